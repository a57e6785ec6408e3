/* SPDX-License-Identifier: MIT */
/* The search of the HTML manual. Each entry of searchIndex (search-index.js) has three texts: a
 * name or heading, its address, and its kind or the title of its page. */
"use strict";

const SEARCH_MOST = 20;

/* Returns how well an entry matches: 0 is best; -1: it does not match. */
function searchRank(entry, words) {
  const name = entry[0].toLowerCase();
  const bare = name.replace(/^tw_/, "");
  const place = entry[2].toLowerCase();
  const asked = words.join(" ");

  if (!words.every((word) => name.includes(word) || place.includes(word))) return -1;
  if (!words.some((word) => name.includes(word))) return -1;
  if (name === asked || bare === asked) return 0;
  if (name.startsWith(asked) || bare.startsWith(asked)) return entry[2] === "page" ? 0 : 1;
  return words.every((word) => name.includes(word)) ? 2 : 3;
}

/* Orders two entries that match equally well: a page comes before a heading, then the shorter one
 * first. */
function searchOrder(one, other) {
  const page = (found) => Number(found.entry[2] !== "page");
  return one.rank - other.rank || page(one) - page(other) || one.entry[0].length - other.entry[0].length;
}

/* Returns the entries that match the text, the best ones first. */
function search(text, most = SEARCH_MOST) {
  const words = text.toLowerCase().split(/[\s()]+/).filter((word) => word !== "");
  if (words.length === 0) return [];
  return searchIndex
    .map((entry) => ({ entry, rank: searchRank(entry, words) }))
    .filter((found) => found.rank >= 0)
    .sort(searchOrder)
    .slice(0, most)
    .map((found) => found.entry);
}

function searchShow(field, list) {
  list.replaceChildren(...search(field.value).map(([name, target, place]) => {
    const item = document.createElement("li");
    const link = document.createElement("a");
    const small = document.createElement("small");
    link.href = list.dataset.up + target;
    link.textContent = name;
    small.textContent = " " + place;
    item.append(link, small);
    return item;
  }));
  list.hidden = list.children.length === 0;
}

function searchBegin() {
  const field = document.getElementById("search");
  const list = document.getElementById("found");
  field.hidden = false;
  field.addEventListener("input", () => searchShow(field, list));
  field.addEventListener("keydown", (event) => {
    const first = list.querySelector("a");
    if (event.key === "Enter" && first !== null) first.click();
    if (event.key === "Enter" || event.key === "Escape") {
      field.value = "";
      searchShow(field, list);
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.target === field) return;
    event.preventDefault();
    field.focus();
  });
}

if (typeof document !== "undefined") searchBegin();
