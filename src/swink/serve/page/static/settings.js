// The model and the mode of a conversation, where the server offers a choice.

import { ask } from "./api.js";
import { announce, byId, element } from "./dom.js";

/** What is chosen now; before a conversation begins, what it will begin with. */
export class Settings {
  constructor(complain) {
    this.complain = complain;
    this.id = null;
    this.now = { model: "", mode: "", models: [], modes: [] };
    this.changed = () => {};
    for (const name of ["model", "mode"]) byId(name).addEventListener("change", (event) => this.choose({ [name]: event.target.value }));
  }

  /** Tokens that the model takes; 0 if that is not known. */
  get window() {
    return this.now.models.find(({ name }) => name === this.now.model)?.window ?? 0;
  }

  async load(id) {
    this.id = id;
    try {
      const found = await ask("GET", id === null ? "page/settings" : `conversations/${id}/settings`);
      if (this.id === id) this.draw(found);
    } catch (error) {
      this.complain(error);
    }
  }

  /** The conversation has begun: what was chosen before holds for it. */
  async adopt(id) {
    const { model, mode, models, modes } = this.now;
    this.id = id;
    const chosen = { ...(models.length ? { model } : {}), ...(modes.length ? { mode } : {}) };
    if (Object.keys(chosen).length) this.draw(await ask("POST", `conversations/${id}/settings`, chosen));
  }

  async choose(choice) {
    Object.assign(this.now, choice);
    this.changed();
    if (this.id === null) return;
    try {
      this.draw(await ask("POST", `conversations/${this.id}/settings`, choice));
      announce(`${Object.keys(choice)[0]}: ${Object.values(choice)[0]}`);
    } catch (error) {
      this.complain(error);
      this.load(this.id);
    }
  }

  draw(found) {
    this.now = found;
    for (const name of ["model", "mode"]) {
      const options = found[`${name}s`];
      byId(`${name}-choice`).hidden = options.length < 2;
      byId(name).replaceChildren(...options.map((option) => optionOf(option, found[name])));
    }
    this.changed();
  }
}

const optionOf = ({ name, meaning }, chosen) =>
  element("option", { value: name, textContent: name, selected: name === chosen, title: meaning ?? "" });
