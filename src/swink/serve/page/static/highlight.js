// Colours for code, by marks that most languages share: comments, strings, numbers, words of the language.

import { element } from "./dom.js";

const LONGEST = 50_000;
const HASH = new Set(["py", "python", "sh", "bash", "shell", "zsh", "yaml", "yml", "toml", "ruby", "rb", "make", "dockerfile", "r"]);
const DASH = new Set(["sql", "lua", "haskell", "hs"]);
const WORDS = new Set(
  ("and as assert async await break case catch class const continue def default defer del do elif else enum except " +
    "export extends finally fn for from func function go if impl implements import in interface is lambda let loop " +
    "match mod mut new not or package pass private protected pub public raise return self static struct super " +
    "switch then this throw trait try type union use var where while with yield " +
    "true false null none nil undefined True False None select from insert update delete where join create table " +
    "esac fi done echo").split(" "),
);

/** The nodes of some code; long code stays plain. */
export function highlight(code, language = "") {
  if (!code || code.length > LONGEST || /^(|text|txt|output|console|plain)$/.test(language)) return code ? [document.createTextNode(code)] : [];
  if (language === "diff" || language === "patch") return diffLines(code);
  const nodes = [];
  let end = 0;
  for (const match of code.matchAll(pattern(language.toLowerCase()))) {
    const kind = kindOf(match);
    if (kind === null) continue;
    if (match.index > end) nodes.push(document.createTextNode(code.slice(end, match.index)));
    nodes.push(element("span", { className: kind, textContent: match[0] }));
    end = match.index + match[0].length;
  }
  if (end < code.length) nodes.push(document.createTextNode(code.slice(end)));
  return nodes;
}

function pattern(language) {
  const line = HASH.has(language) ? "#" : DASH.has(language) ? "--" : "\\/\\/";
  const comment = `(?<comment>${line}[^\\n]*|\\/\\*[\\s\\S]*?\\*\\/)`;
  const string = `(?<string>"""[\\s\\S]*?"""|"(?:[^"\\\\\\n]|\\\\.)*"|'(?:[^'\\\\\\n]|\\\\.)*'|\`(?:[^\`\\\\]|\\\\.)*\`)`;
  return new RegExp(`${comment}|${string}|(?<number>\\b\\d[\\w.]*)|(?<word>[A-Za-z_]\\w*)(?<call>(?=\\())?`, "g");
}

function kindOf({ groups }) {
  if (groups.comment !== undefined) return "c";
  if (groups.string !== undefined) return "s";
  if (groups.number !== undefined) return "m";
  if (WORDS.has(groups.word)) return "k";
  return groups.call === undefined ? null : "f";
}

function diffLines(code) {
  const kinds = { "+": "gi", "-": "gd", "@": "b" };
  return code.split(/(?<=\n)/).map((line) => {
    const kind = kinds[line[0]];
    return kind === undefined ? document.createTextNode(line) : element("span", { className: kind, textContent: line });
  });
}
