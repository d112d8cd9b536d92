package command

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// An event can contain sequences that set the title of a terminal, clear its screen or write over a
// line.
const hostile = "0/3 nodes\x1b]0;owned\a \x1b[2J\x1b[1;31mred \u009b1mC1 over\rwritten\x7f \u202egnp.exe\u2066\u061c\u2028"

const hostileEscaped = `0/3 nodes\u001b]0;owned\u0007 \u001b[2J\u001b[1;31mred \u009b1mC1 over\u000dwritten\u007f \u202egnp.exe\u2066\u061c\u2028`

func TestControlCharactersOfTheClusterAreEscaped(t *testing.T) {
	for name, write := range map[string]func(u *UI){
		"table":   func(u *UI) { _ = u.Data("table", nil, hostile+"\n") },
		"warning": func(u *UI) { u.Warn(hostile) },
		"error":   func(u *UI) { u.Fail(problem.WithHint(errors.New(hostile), hostile)) },
		"step":    func(u *UI) { u.Step(hostile)(nil) },
		"progress": func(u *UI) {
			u.err.terminal = true
			u.Progress(hostile)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var text bytes.Buffer
			u := NewUI("v1", nil, &text, &text)
			write(u)
			got := strings.ReplaceAll(text.String(), clearLine, "")
			if !strings.Contains(got, hostileEscaped) || strings.ContainsAny(got, "\x1b\a\r\u009b\x7f\u202e\u2066\u061c\u2028") {
				t.Errorf("got %q, want %s", got, hostileEscaped)
			}
		})
	}
}

func TestEscapedDataHaveTheSameValue(t *testing.T) {
	for _, format := range []string{"json", "yaml"} {
		for _, want := range []string{hostile, "\u202egnp.exe", "first\nsecond \u202egnp.exe", "a\u2028b"} {
			var text bytes.Buffer
			if err := NewUI("v1", nil, &text, nil).Data(format, map[string]string{want: want}, ""); err != nil {
				t.Fatal(err)
			}
			var got map[string]string
			if err := yaml.Unmarshal(text.Bytes(), &got); err != nil || got[want] != want {
				t.Errorf("%s %s is %q, %v, want %q", format, text.Bytes(), got, err, want)
			}
			if strings.ContainsAny(text.String(), "\x1b\u009b\x7f\u202e\u2066\u2028") {
				t.Errorf("%s: got %q", format, text.String())
			}
		}
	}
}

func TestEscaperKeepsOtherText(t *testing.T) {
	for text, want := range map[string]string{
		"a\tb\nc\r\nd":       "a\tb\nc\r\nd",
		"✓ … café 日本":        "✓ … café 日本",
		"\xff\x9b2J\xfe":     "\xff\\u009b2J\xfe",
		"a\x00b\bc\x1b":      `a\u0000b\u0008c\u001b`,
		"\r\r\n":             "\\u000d\r\n",
		"עברית 👩\u200d💻":     "עברית 👩\u200d💻",
		"replacement \ufffd": "replacement \ufffd",
	} {
		var whole, bytewise bytes.Buffer
		if _, err := io.WriteString(newOutput(&whole), text); err != nil {
			t.Fatal(err)
		}
		if whole.String() != want {
			t.Errorf("%q: got %q, want %q", text, whole.String(), want)
		}
		if strings.Contains(text, "\r") || strings.Contains(text, "\xfe") {
			continue // both need the byte after them
		}
		out := newOutput(&bytewise)
		for i := range len(text) {
			if n, err := out.Write([]byte{text[i]}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		if bytewise.String() != want {
			t.Errorf("%q in single bytes: got %q, want %q", text, bytewise.String(), want)
		}
	}
}

// kubectl logs writes lines unchanged. A terminal gets them escaped.
func TestLogsAreUnchangedInAPipe(t *testing.T) {
	for terminal, want := range map[bool]string{true: hostileEscaped, false: hostile} {
		var text bytes.Buffer
		out := newOutput(&text)
		out.terminal = terminal
		if _, err := io.WriteString(out.Logs(), hostile); err != nil || text.String() != want {
			t.Errorf("terminal %v: got %q, %v, want %q", terminal, text.String(), err, want)
		}
	}
}
