// The prompt: text, pictures by paste, drop or choice, and the buttons for what is to become of it.

import { announce, byId, element } from "./dom.js";

const TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const LARGEST = 8 * 1024 * 1024;
const IDLE = "Enter sends · Shift+Enter for a new line · Alt+K shows all keys";
const BUSY = "Enter steers · Alt+Enter follows up · Escape stops";

/** The form at the foot of the page; `send(kind, text, images)` and `stop()` do the work. */
export class Composer {
  constructor(send, stop) {
    this.send = send;
    this.stop = stop;
    this.images = [];
    this.isBusy = false;
    this.isSending = false;
    this.text = byId("prompt");
    this.listen();
    this.setBusy(false);
  }

  listen() {
    byId("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit(this.isBusy ? "steer" : "send");
    });
    this.text.addEventListener("keydown", (event) => this.key(event));
    this.text.addEventListener("input", () => this.fit());
    this.text.addEventListener("paste", (event) => this.take(event, event.clipboardData));
    byId("follow").addEventListener("click", () => this.submit("follow_up"));
    byId("stop").addEventListener("click", () => this.stop());
    byId("attach").addEventListener("click", () => byId("files").click());
    byId("files").addEventListener("change", (event) => {
      this.add(event.target.files);
      event.target.value = "";
    });
    document.addEventListener("dragover", (event) => {
      event.preventDefault();
      document.body.classList.add("dropping");
    });
    document.addEventListener("dragleave", (event) => event.relatedTarget === null && document.body.classList.remove("dropping"));
    document.addEventListener("drop", (event) => {
      document.body.classList.remove("dropping");
      event.preventDefault();
      this.take(event, event.dataTransfer);
    });
  }

  key(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    this.submit(this.isBusy ? (event.altKey ? "follow_up" : "steer") : "send");
  }

  async submit(kind) {
    const text = this.text.value.trim();
    if (this.isSending || (!text && !this.images.length)) return;
    this.mark(true);
    const images = this.images;
    this.fill("");
    this.images = [];
    this.drawImages();
    const isSent = await this.send(kind, text, images);
    this.mark(false);
    if (isSent) return;
    this.fill(this.text.value ? `${text}\n${this.text.value}` : text); // nothing typed is lost
    this.images = [...images, ...this.images];
    this.drawImages();
  }

  /** Put a text into the field. */
  fill(text) {
    this.text.value = text;
    this.fit();
  }

  focus() {
    this.text.focus();
  }

  setBusy(isBusy) {
    this.isBusy = isBusy;
    this.mark(this.isSending);
    byId("send").textContent = isBusy ? "Steer" : "Send";
    byId("hint").textContent = isBusy ? BUSY : IDLE;
    for (const id of ["follow", "stop"]) byId(id).hidden = !isBusy;
  }

  /** One thing is sent at a time: a second one would begin a conversation of its own. */
  mark(isSending) {
    this.isSending = isSending;
    byId("composer").dataset.state = isSending ? "sending" : this.isBusy ? "busy" : "idle";
  }

  fit() {
    this.text.style.height = "auto";
    this.text.style.height = `${Math.min(this.text.scrollHeight + 2, innerHeight * 0.4)}px`;
  }

  take(event, data) {
    const files = Array.from(data?.files ?? []);
    if (!files.length) return;
    event.preventDefault();
    this.add(files);
  }

  async add(files) {
    for (const file of Array.from(files)) { // now: the list is emptied when the field is
      if (!TYPES.includes(file.type)) announce(`${file.name} is no picture that can be sent`, true);
      else if (file.size > LARGEST) announce(`${file.name} is larger than ${LARGEST >> 20} MB`, true);
      else this.images.push(await read(file));
    }
    this.drawImages();
    if (this.images.length) announce(`${this.images.length} ${this.images.length === 1 ? "picture" : "pictures"} to send`);
  }

  drawImages() {
    const list = byId("images");
    list.hidden = !this.images.length;
    list.replaceChildren(
      ...this.images.map((image) => {
        const remove = () => {
          this.images = this.images.filter((other) => other !== image);
          this.drawImages();
          this.focus();
        };
        const button = element("button", { type: "button", textContent: "×", "aria-label": `Remove ${image.name}`, onclick: remove });
        return element("li", {}, element("img", { src: image.url, alt: image.name }), button);
      }),
    );
  }
}

/** A file as a block of a message, and what is shown of it. */
function read(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onerror = () => reject(reader.error);
    reader.onload = () => {
      const url = reader.result;
      const data = url.slice(url.indexOf(",") + 1);
      resolve({ name: file.name || "picture", url, block: { type: "image", data, media_type: file.type } });
    };
    reader.readAsDataURL(file);
  });
}
