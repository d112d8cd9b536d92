//go:build linux && browser

// Package site checks the documentation site that `make site` wrote, in Chromium and as files.
package site

import (
	"flag"
	"fmt"
	"html"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/test/internal/browser"
)

var screenshots = flag.String("screenshots", "", "keep the screenshots in `DIR`")

const root = "../../../dist/site"

// pages returns the text of each page by its path below root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".html" {
			return err
		}
		text, err := os.ReadFile(path)
		found[strings.TrimPrefix(path, root+"/")] = string(text)
		return err
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("read %s, which `make site` writes: %v, %d pages", root, err, len(found))
	}
	return found
}

func TestSiteHasEveryDocument(t *testing.T) {
	site := pages(t)
	documents, err := filepath.Glob("../../../docs/*.md")
	if err != nil || len(documents) == 0 {
		t.Fatalf("list docs/*.md: %v, %d files", err, len(documents))
	}
	for _, document := range documents {
		page := "docs/" + strings.TrimSuffix(filepath.Base(document), ".md") + ".html"
		if site[page] == "" {
			t.Errorf("the site has no %s", page)
		}
	}
}

func TestLinksOfTheSiteResolve(t *testing.T) {
	site := pages(t)
	address := regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	for path, text := range site {
		for _, link := range address.FindAllStringSubmatch(text, -1) {
			u, err := url.Parse(html.UnescapeString(link[1]))
			switch {
			case err != nil:
				t.Errorf("%s: %v", path, err)
			case u.Scheme == "" && u.Host == "":
				checkLink(t, site, path, u)
			case u.Scheme != "https" && u.Scheme != "data":
				t.Errorf("%s refers to %s", path, u)
			}
		}
		for _, resource := range regexp.MustCompile(`<(?:script|img|link|iframe)[^>]*(?:src|href)="(?:https?:)?//[^"]*"`).
			FindAllString(text, -1) {
			t.Errorf("%s loads a file from elsewhere: %s", path, resource)
		}
	}
}

// checkLink checks that the file and the anchor of a relative link exist.
func checkLink(t *testing.T, site map[string]string, from string, u *url.URL) {
	t.Helper()
	target := from
	if u.Path != "" {
		target = filepath.Join(filepath.Dir(from), u.Path)
	}
	if info, err := os.Stat(filepath.Join(root, target)); err != nil || info.IsDir() {
		t.Errorf("%s links to %s, which is not a file", from, u)
	} else if u.Fragment != "" && !strings.Contains(site[target], `id="`+html.EscapeString(u.Fragment)+`"`) {
		t.Errorf("%s links to %s: the page has no such anchor", from, u)
	}
}

// views are the windows of a phone and a laptop, each light and dark.
func views() []browser.View {
	return []browser.View{
		{Width: 390, Height: 844}, {Width: 390, Height: 844, Dark: true},
		{Width: 1280, Height: 900}, {Width: 1280, Height: 900, Dark: true},
	}
}

func TestEveryPageIsReadableOnPhonesAndDesktopsInLightAndDark(t *testing.T) {
	b := browser.Start(t)
	for path := range pages(t) {
		t.Run(path, func(t *testing.T) {
			p := b.Open(t, filepath.Join(root, path), views()[0])
			for _, view := range views() {
				p.Show(t, view)
				if bad := p.Unreadable(t, "h1, h2, h3, p, li, td, th, a, summary, code, code span, input", 20); len(bad) > 0 {
					t.Errorf("%s: low contrast: %v", view, bad)
				}
				if over := p.TooWide(t, ".scroll, pre, .skip"); len(over) > 0 {
					t.Errorf("%s: wider than the window: %v", view, over)
				}
				if width := p.Eval(t, `document.documentElement.scrollWidth`); width.(float64) > float64(view.Width) {
					t.Errorf("%s: the page is %v wide", view, width)
				}
				if dark := p.Eval(t, `getComputedStyle(document.body).backgroundColor`) != "rgb(255, 255, 255)"; dark != view.Dark {
					t.Errorf("%s: dark: %t", view, dark)
				}
				keep(t, strings.ReplaceAll(path, "/", "-")+"-"+view.String(), p)
			}
			if len(p.Problems) > 0 {
				t.Errorf("problems: %v", p.Problems)
			}
		})
	}
}

// A page has one main heading, landmarks with names, and a link that skips the navigation.
func TestPagesHaveLandmarksAndOneMainHeading(t *testing.T) {
	for path, text := range pages(t) {
		for _, part := range []string{"<h1 ", "<main ", "<header>", "<article>", `<nav class="pages"`, `class="skip" href="#content"`} {
			if count := strings.Count(text, part); count != 1 {
				t.Errorf("%s has %d of %s, want 1", path, count, part)
			}
		}
	}
}

// results is a script that returns the addresses, headings and excerpts of the results.
const results = `Array.from(document.querySelectorAll("#results a")).map(function (a) {
  return [a.getAttribute("href"), a.querySelector("b").textContent, a.querySelector("small").textContent];
})`

func TestSearchFindsPagesOffline(t *testing.T) {
	b := browser.Start(t)
	for query, want := range map[string]string{
		"node-files-drift":          "findings.html#node-files-drift",
		"drift":                     "findings.html#drift",
		"rollback":                  "reference.html#pmk-sched-rollback",
		"troubleshooting":           "troubleshooting.html",
		"several control-plane nod": "install.html#several-control-plane-nodes",
		"presets":                   "configuration.html#presets",
		"known problems":            "releases.html#known-problems",
		"nodeaffinity":              "findings.html#nodeaffinity",
		"sysdump":                   "reference.html#pmk-sched-sysdump",
		"alerts":                    "monitoring.html",
	} {
		t.Run(query, func(t *testing.T) {
			p := b.Open(t, filepath.Join(root, "docs/install.html"), views()[2])
			p.Eval(t, `document.dispatchEvent(new KeyboardEvent("keydown", {key: "/"}))`)
			if focused := p.Eval(t, `document.activeElement.id`); focused != "search" {
				t.Fatalf("the key / focuses %v", focused)
			}
			p.Type(t, query)
			p.Eval(t, `new Promise(function (done) {
			  (function wait() { document.querySelector("#results > *") ? done() : setTimeout(wait, 10); }());
			})`)
			found := p.Eval(t, results).([]any)
			var first []string
			for _, result := range found[:min(3, len(found))] {
				first = append(first, fmt.Sprint(result.([]any)[0]))
			}
			if !strings.Contains(strings.Join(first, " "), "../docs/"+want) {
				t.Errorf("%q finds %q, want %s among the first three", query, first, want)
			}
			keep(t, "search-"+query, p)
			if over := p.TooWide(t, ".scroll, pre, .skip"); len(over) > 0 {
				t.Errorf("wider than the window: %v", over)
			}
			if len(p.Problems) > 0 {
				t.Errorf("problems: %v", p.Problems)
			}
		})
	}
}

func TestSearchOpensTheSelectedResult(t *testing.T) {
	p := browser.Start(t).Open(t, filepath.Join(root, "index.html"), views()[0])
	p.Eval(t, `document.getElementById("search").focus()`)
	p.Type(t, "pods-ignored")
	p.Eval(t, `new Promise(function (done) {
	  (function wait() { document.querySelector("#results a") ? done() : setTimeout(wait, 10); }());
	})`)
	keep(t, "search-phone", p)
	if over := p.TooWide(t, ".scroll, pre, .skip"); len(over) > 0 {
		t.Errorf("wider than the window: %v", over)
	}
	p.Eval(t, `document.getElementById("search").dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowDown", bubbles: true}))`)
	opened := p.Eval(t, `document.querySelector("#results [aria-selected=true]").href`).(string)
	if !strings.HasSuffix(opened, "/docs/findings.html#pods-ignored") {
		t.Errorf("the first result is %s", opened)
	}
}

// keep writes a screenshot to the directory of -screenshots, if there is one.
func keep(t *testing.T, name string, p *browser.Page) {
	t.Helper()
	if *screenshots == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(*screenshots, name+".png"), p.Screenshot(t), 0o644); err != nil {
		t.Fatal(err)
	}
}
