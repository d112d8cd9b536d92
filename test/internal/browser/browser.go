//go:build linux

// Package browser drives headless Chromium, for tests of web pages. Chromium runs in a new network
// namespace, without a network, even loopback.
package browser

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// timeout bounds one command of the browser.
const timeout = 2 * time.Minute

// Browser is a running Chromium.
type Browser struct{ c *connection }

// Start starts Chromium, which ends with the test. Namespaces need root, and as root Chromium does
// not run in its sandbox: open only pages that the test has made.
func Start(t testing.TB) *Browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("find chromium: %v (hack/deps.sh 'chromium chromium')", err)
	}
	commands, toBrowser, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromBrowser, answers, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--hide-scrollbars", "--no-first-run",
		"--force-color-profile=srgb", "--user-data-dir="+t.TempDir(), "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{commands, answers} // 3 and 4, which the flag means
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL, Setpgid: true}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	b := &Browser{c: newConnection(toBrowser, fromBrowser)}
	t.Cleanup(func() {
		// Its own processes are in its group. It may have ended.
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Errorf("stop chromium: %v", err)
		}
		_ = cmd.Wait() // it was killed
		for line := range strings.Lines(stderr.String()) {
			if t.Failed() && !strings.Contains(line, "/dbus/") { // there is none
				t.Logf("chromium: %s", line)
			}
		}
	})
	if err := errors.Join(commands.Close(), answers.Close()); err != nil {
		t.Fatal(err)
	}
	return b
}

// View is how a page is shown.
type View struct {
	Width, Height int
	Dark          bool
}

// String returns the name of the view, such as 1280x800-dark.
func (v View) String() string {
	scheme := "light"
	if v.Dark {
		scheme = "dark"
	}
	return fmt.Sprintf("%dx%d-%s", v.Width, v.Height, scheme)
}

// Page is an open page.
type Page struct {
	b       *Browser
	session string
	// Problems are errors and warnings of the console, exceptions of scripts, and requests for
	// other resources than the page.
	Problems []string
}

// Open opens a file.
func (b *Browser) Open(t testing.TB, file string, view View) *Page {
	t.Helper()
	var target struct{ TargetID string }
	b.call(t, nil, "Target.createTarget", params{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call(t, nil, "Target.attachToTarget", params{"targetId": target.TargetID, "flatten": true}, &attached)
	p := &Page{b: b, session: attached.SessionID}
	t.Cleanup(func() { b.call(t, nil, "Target.closeTarget", params{"targetId": target.TargetID}, nil) })
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		p.call(t, domain+".enable", nil, nil)
	}
	p.Show(t, view)
	absolute, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	var opened struct{ ErrorText string }
	p.call(t, "Page.navigate", params{"url": "file://" + absolute}, &opened)
	if opened.ErrorText != "" {
		t.Fatalf("open %s: %s", file, opened.ErrorText)
	}
	deadline := time.Now().Add(timeout)
	for p.Eval(t, "document.readyState") != "complete" {
		if time.Now().After(deadline) {
			t.Fatalf("%s is not loaded after %s", file, timeout)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return p
}

// Show sets the size of the window and the color scheme.
func (p *Page) Show(t testing.TB, view View) {
	t.Helper()
	scheme := "light"
	if view.Dark {
		scheme = "dark"
	}
	p.call(t, "Emulation.setDeviceMetricsOverride",
		params{"width": view.Width, "height": view.Height, "deviceScaleFactor": 1, "mobile": false}, nil)
	p.call(t, "Emulation.setEmulatedMedia",
		params{"features": []params{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// Eval returns the value of an expression, decoded from JSON.
func (p *Page) Eval(t testing.TB, expression string) any {
	t.Helper()
	var answer struct {
		Result           struct{ Value any }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	p.call(t, "Runtime.evaluate", params{"expression": expression, "returnByValue": true, "awaitPromise": true}, &answer)
	if e := answer.ExceptionDetails; e != nil {
		t.Fatalf("evaluate %s: %s", expression, e.Exception.Description)
	}
	return answer.Result.Value
}

// Move moves the mouse to a point of the window.
func (p *Page) Move(t testing.TB, x, y float64) {
	t.Helper()
	p.mouse(t, "mouseMoved", x, y)
}

// Click clicks at a point of the window.
func (p *Page) Click(t testing.TB, x, y float64) {
	t.Helper()
	p.mouse(t, "mouseMoved", x, y)
	p.mouse(t, "mousePressed", x, y)
	p.mouse(t, "mouseReleased", x, y)
}

func (p *Page) mouse(t testing.TB, event string, x, y float64) {
	t.Helper()
	what := params{"type": event, "x": x, "y": y}
	if event != "mouseMoved" {
		what["button"], what["clickCount"] = "left", 1
	}
	p.call(t, "Input.dispatchMouseEvent", what, nil)
}

// Type types a text into the focused element.
func (p *Page) Type(t testing.TB, text string) {
	t.Helper()
	p.call(t, "Input.insertText", params{"text": text}, nil)
}

// Screenshot returns the contents of the window as PNG.
func (p *Page) Screenshot(t testing.TB) []byte {
	t.Helper()
	var shot struct{ Data string }
	p.call(t, "Page.captureScreenshot", params{"format": "png"}, &shot)
	text, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		t.Fatalf("read the screenshot: %v", err)
	}
	return text
}

func (p *Page) call(t testing.TB, method string, with params, into any) {
	t.Helper()
	p.b.call(t, p, method, with, into)
}

// call sends a command and waits for its answer. Without a page it is for the browser.
func (b *Browser) call(t testing.TB, p *Page, method string, with params, into any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), timeout)
	defer cancel()
	session := ""
	if p != nil {
		session = p.session
	}
	answer, events, err := b.c.call(ctx, session, method, with)
	if err != nil {
		t.Fatalf("chromium: %s: %v", method, err)
	}
	if into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			t.Fatalf("chromium: %s: %v in %s", method, err, answer)
		}
	}
	if p != nil {
		p.note(events)
	}
}

// note adds the problems among events.
func (p *Page) note(events []message) {
	for _, e := range events {
		if e.SessionID != p.session {
			continue
		}
		var about struct {
			Type             string
			Entry            struct{ Level, Text string }
			Request          struct{ URL string }
			ExceptionDetails struct{ Exception struct{ Description string } }
			Args             []struct{ Value any }
		}
		if json.Unmarshal(e.Params, &about) != nil {
			continue // an event with other fields
		}
		switch e.Method {
		case "Runtime.exceptionThrown":
			p.Problems = append(p.Problems, "exception: "+about.ExceptionDetails.Exception.Description)
		case "Runtime.consoleAPICalled":
			p.Problems = append(p.Problems, fmt.Sprintf("console %s: %v", about.Type, about.Args))
		case "Log.entryAdded":
			p.Problems = append(p.Problems, about.Entry.Level+": "+about.Entry.Text)
		case "Network.requestWillBeSent":
			if url := about.Request.URL; !strings.HasPrefix(url, "file://") && !strings.HasPrefix(url, "data:") {
				p.Problems = append(p.Problems, "request: "+url)
			}
		}
	}
}
