// Highlights code blocks when they become visible.
(() => {
  const words = {
    py: "False None True and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield",
    sh: "case cd def do done echo elif else end esac exit export false fi for function if in local no return set then true unset until while yes",
    js: "abstract any as async await boolean break case catch char class const continue default delete do double else enum export extends false final finally float fn for from func function go if impl implements import in instanceof int interface let long match mod move mut new nil null number package private protected pub public return self static string struct super switch this throw throws true try type typeof undefined unsafe use var void where while with yield",
    sql: "all and as by case create data delete distinct do else end for from function group having if import in index inner insert into is join left let limit local module nil not null offset on or order outer return right select set table then true union update values view when where while",
    ml: "",
  };
  const comments = {
    py: "#[^\\n]*",
    sh: "(?<![^\\s;])#[^\\n]*",
    js: "\\/\\/[^\\n]*|\\/\\*[^]*?\\*\\/",
    sql: "--[^\\n]*|\\/\\*[^]*?\\*\\/",
    ml: "<!--[^]*?-->",
  };
  const quoted = ['"{3}[^]*?"{3}', "'{3}[^]*?'{3}", '"(?:[^"\\\\\\n]|\\\\.)*"', "'(?:[^'\\\\\\n]|\\\\.)*'", "`(?:[^`\\\\]|\\\\.)*`"].join("|");
  const rules = {};
  const rule = (family) => rules[family] ??= new RegExp([
    `(?<c>${comments[family]})`,
    `(?<s>${quoted})`,
    family === "ml" ? "(?<k><\\/?[\\w:-]+|\\/?>)" : `(?<k>\\b(?:${words[family].replaceAll(" ", "|")})\\b)`,
    "(?<nf>(?<=\\b(?:def|class|function|fn|func|struct|interface) +)\\w+|^[ \\t]*@[\\w.]+)",
    "(?<m>\\b(?:0[xX][0-9a-fA-F]+|\\d+(?:\\.\\d+)?)\\b)",
  ].join("|"), family === "sql" ? "gim" : "gm");
  const most = 120000;
  const paint = (place, family) => {
    const said = place.textContent;
    if (place.firstElementChild || said.length > most) return;
    const made = document.createDocumentFragment();
    let end = 0;
    for (const found of said.matchAll(rule(family))) {
      const span = document.createElement("span");
      span.className = Object.keys(found.groups).find((name) => found.groups[name] !== undefined);
      span.textContent = found[0];
      made.append(said.slice(end, found.index), span);
      end = found.index + found[0].length;
    }
    made.append(said.slice(end));
    place.replaceChildren(made);
  };
  const families = Object.keys(words);
  const look = (inside) => {
    for (const code of inside.querySelectorAll("[class*=' l-']")) {
      const family = families.find((each) => code.classList.contains(`l-${each}`));
      if (!family || !code.checkVisibility()) continue;
      code.classList.remove(`l-${family}`);
      for (const place of code.querySelectorAll(".l, td:last-child")) paint(place, family);
    }
  };
  document.addEventListener("toggle", (event) => { if (event.target.open) look(event.target); }, true);
  document.addEventListener("DOMContentLoaded", () => look(document));
})();
