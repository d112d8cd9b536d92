// Searches the sections of all pages. The index is a script, which pages from disk can load, and is
// loaded when the search is used for the first time.
(function () {
  "use strict";
  var root = document.currentScript.dataset.root;
  var field = document.getElementById("search"), list = document.getElementById("results");
  var loading = false, selected = -1;
  var most = 20; // results

  field.parentElement.hidden = false;

  function load() {
    if (loading) return;
    loading = true;
    var script = document.createElement("script");
    script.src = root + "search-index.js";
    script.onload = show;
    document.head.append(script);
  }

  function escaped(text) { return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"); }

  // words returns the words of a query as expressions: at the beginning of a word, with or without a
  // plural's s.
  function words(query) {
    return (query.toLowerCase().match(/[^\s"`]+/g) || []).map(function (word) {
      var stem = word.length > 3 ? word.replace(/([^s])s$/, "$1") : word;
      return {
        prefix: new RegExp("(^|[^a-z0-9])(" + escaped(stem) + ")", "gi"),
        whole: new RegExp("(^|[^a-z0-9])" + escaped(stem) + "s?($|[^a-z0-9])", "i"),
      };
    });
  }

  // score rates one word in a section: 0 if it does not contain it. Whole words count double, headings
  // more than titles, titles more than text, and a word less the longer the text is.
  function score(word, section) {
    var sum = 0;
    [[section.heading, 24], [section.page, 12]].forEach(function (part) {
      if (part[0].search(word.prefix) >= 0) sum += part[1] * (word.whole.test(part[0]) ? 2 : 1);
    });
    var found = section.text.match(word.prefix);
    if (found) {
      sum += (word.whole.test(section.text) ? 2 : 1) * (1 + Math.log(found.length)) * 8 / Math.log(section.text.length + 8);
    }
    return sum;
  }

  function find(query) {
    var terms = words(query), found = [];
    if (!terms.length) return found;
    (window.searchIndex || []).forEach(function (section, order) {
      var sum = 0;
      for (var i = 0; i < terms.length; i++) {
        var one = score(terms[i], section);
        if (!one) return;
        sum += one;
      }
      found.push({ section: section, score: sum, order: order, terms: terms });
    });
    return found.sort(function (a, b) { return b.score - a.score || a.order - b.order; }).slice(0, most);
  }

  // marked appends a text with its matches marked.
  function marked(to, text, terms) {
    var all = new RegExp(terms.map(function (t) { return t.prefix.source; }).join("|"), "gi"), from = 0, match;
    while ((match = all.exec(text))) {
      var word = match.slice(1).filter(Boolean).pop(), at = match.index + match[0].length - word.length;
      var mark = document.createElement("mark");
      mark.textContent = word;
      to.append(text.slice(from, at), mark);
      from = at + word.length;
    }
    to.append(text.slice(from));
  }

  // excerpt returns the text around the first match.
  function excerpt(text, terms) {
    var at = Math.min.apply(null, terms.map(function (t) { var i = text.search(t.prefix); return i < 0 ? text.length : i; }));
    if (at == text.length) at = 0;
    var from = at < 60 ? 0 : text.indexOf(" ", at - 50) + 1;
    if (from > at || from <= 0) from = at < 60 ? 0 : at;
    var to = text.length <= from + 180 ? text.length : text.lastIndexOf(" ", from + 180);
    return (from ? "… " : "") + text.slice(from, Math.max(to, from + 120)) + (to < text.length ? " …" : "");
  }

  function show() {
    var query = field.value.trim(), found = find(query);
    selected = -1;
    list.textContent = "";
    list.hidden = !query || !window.searchIndex; // show is called again when the index is loaded
    field.setAttribute("aria-expanded", String(!list.hidden));
    field.removeAttribute("aria-activedescendant");
    if (list.hidden) return;
    found.forEach(function (f, i) {
      var a = document.createElement("a"), title = document.createElement("b"), text = document.createElement("small");
      a.href = root + f.section.at;
      a.id = "result-" + i;
      a.tabIndex = -1;
      a.setAttribute("role", "option");
      title.textContent = f.section.heading;
      if (f.section.page != f.section.heading) a.append(title, " — " + f.section.page); else a.append(title);
      marked(text, excerpt(f.section.text, f.terms), f.terms);
      a.append(text);
      list.append(a);
    });
    if (!found.length) {
      var none = document.createElement("p");
      none.textContent = "Nothing found.";
      list.append(none);
    }
  }

  function select(step) {
    var options = list.querySelectorAll("a");
    if (!options.length) return;
    if (selected >= 0) options[selected].setAttribute("aria-selected", "false");
    selected = (selected + step + options.length) % options.length;
    options[selected].setAttribute("aria-selected", "true");
    options[selected].scrollIntoView({ block: "nearest" });
    field.setAttribute("aria-activedescendant", options[selected].id);
  }

  function close() {
    list.hidden = true;
    field.setAttribute("aria-expanded", "false");
  }

  field.addEventListener("focus", function () { load(); if (field.value) show(); });
  field.addEventListener("input", function () { load(); show(); });
  field.addEventListener("keydown", function (e) {
    if (e.key == "ArrowDown") select(1);
    else if (e.key == "ArrowUp") select(selected < 0 ? 0 : -1);
    else if (e.key == "Escape") { close(); field.blur(); }
    else if (e.key == "Enter") { var a = list.querySelectorAll("a")[Math.max(selected, 0)]; if (a && !list.hidden) { close(); location.href = a.href; } }
    else return;
    e.preventDefault();
  });
  list.addEventListener("click", close);
  document.addEventListener("click", function (e) { if (!field.parentElement.contains(e.target)) close(); });
  document.addEventListener("keydown", function (e) {
    if (e.key == "/" && !e.ctrlKey && !e.metaKey && !e.altKey && !/^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName)) {
      e.preventDefault();
      field.focus();
    }
  });
}());
