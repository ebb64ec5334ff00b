"use strict";
// The page of a run. A saved page has its data in the element `saved`; otherwise the data come from the server, about once a
// second. Text of the run becomes text nodes alone, never markup.

const STATES = ["failed", "waiting", "running", "starting", "awaited", "ended", "done"];
const OVER = new Set(["done", "failed", "interrupted", "lost"]);
const INTERVAL = 1000;      // milliseconds between two looks
const RATE_LOOKS = 4;       // looks over which rates are averaged: instances report less often than once a second
const MOST_SAMPLES = 600;   // of the history; beyond, every second sample is dropped
const MOST_ROWS = 100;      // of a table

const saved = JSON.parse(document.getElementById("saved").textContent);
let facts, state;
let looks = [];             // the last states, for rates
let history = [];           // {seconds, messages, counts}
let order = { column: null, falling: true };
let log = { key: null, text: null };

const at = (selector) => document.querySelector(selector);

/** An element with properties and children; texts become text nodes. */
function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Text in which what stands between two grave accents is a command. */
function withCode(text) {
  return text.split("`").map((part, place) => place % 2 ? make("code", {}, part) : part);
}

/** Sets a text only if it is another one, so that a screen reader and a selection are left alone. */
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
