//go:build linux

package browser

import (
	"fmt"
	"testing"
)

// Unreadable returns descriptions of the elements of a selector whose text has too little contrast
// with its background. WCAG 2 requires 4.5. It fails the test unless the page has at least as many
// elements.
func (p *Page) Unreadable(t testing.TB, selector string, atLeast int) []any {
	t.Helper()
	found := p.Eval(t, fmt.Sprintf(unreadable, selector)).([]any)
	if count := found[0].(float64); int(count) < atLeast {
		t.Errorf("only %.0f elements match %s, want at least %d", count, selector, atLeast)
	}
	return found[1:]
}

const unreadable = `(function () {
  function color(text) { var n = text.match(/[\d.]+/g).map(Number); return n.length < 4 ? n.concat(1) : n; }
  function luminance(c) {
    return c.slice(0, 3).map(function (v) { v /= 255; return v <= .03928 ? v / 12.92 : Math.pow((v + .055) / 1.055, 2.4); })
      .reduce(function (sum, v, i) { return sum + v * [.2126, .7152, .0722][i]; }, 0);
  }
  function behind(e) {
    for (; e; e = e.parentElement) { var c = color(getComputedStyle(e).backgroundColor); if (c[3]) return c; }
    return [255, 255, 255, 1];
  }
  var bad = new Set(), count = 0;
  document.querySelectorAll(%q).forEach(function (e) {
    var style = getComputedStyle(e), ink = luminance(color(e instanceof SVGElement ? style.fill : style.color)), paper = luminance(behind(e));
    var contrast = (Math.max(ink, paper) + .05) / (Math.min(ink, paper) + .05);
    count++;
    if (contrast < 4.5) bad.add(e.tagName + "." + e.className + " " + contrast.toFixed(1));
  });
  return [count].concat(Array.from(bad));
}())`

// TooWide returns descriptions of elements that extend beyond the window and are not in an element
// of the selector, which scrolls or is hidden.
func (p *Page) TooWide(t testing.TB, scrollable string) []any {
	t.Helper()
	return p.Eval(t, fmt.Sprintf(tooWide, scrollable)).([]any)
}

const tooWide = `Array.from(document.querySelectorAll("body *")).filter(function (e) {
  var box = e.getBoundingClientRect();
  return box.width && (box.right > innerWidth + 1 || box.left < -1) && !e.closest(%q);
}).slice(0, 5).map(function (e) { return e.tagName + "." + (e.className.baseVal || e.className) + " to " + Math.round(e.getBoundingClientRect().right); })`
