package command

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

func TestProgressOfALongStepIsALineEveryInterval(t *testing.T) {
	var out, errw bytes.Buffer
	u := NewUI("v1", nil, &out, &errw)
	done := u.Step("compile kubelet")
	u.Progress("compile kubelet: 1 of 3 packages")
	u.err.reported = u.err.reported.Add(-progressInterval)
	u.Progress("compile kubelet: 2 of 3 packages")
	u.Progress("compile kubelet: 3 of 3 packages")
	done(errors.New("it failed"))
	want := "… compile kubelet: 2 of 3 packages\n✗ compile kubelet\n"
	if errw.String() != want || out.Len() > 0 {
		t.Errorf("standard error: got %q, want %q; standard output: got %q, want nothing", errw.String(), want, out.String())
	}
}

func TestProgressOnATerminalIsTheLineOfTheStep(t *testing.T) {
	var errw bytes.Buffer
	u := NewUI("v1", nil, nil, &errw)
	u.err.terminal = true
	done := u.Step("compile kubelet")
	u.Progress("compile kubelet: 1 of 3 packages")
	u.Progress("compile kubelet: 2 of 3 packages")
	done(nil)
	want := []string{
		"", "… compile kubelet", "… compile kubelet: 1 of 3 packages", "… compile kubelet: 2 of 3 packages",
		"✓ compile kubelet\n",
	}
	if got := strings.Split(errw.String(), clearLine); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q, want %q, each in place of the one before", got, want)
	}
}

func TestTheLineOfAStepHasItsDurationUnlessItIsZero(t *testing.T) {
	for took, want := range map[time.Duration]string{
		49 * time.Millisecond: "✓ apply\n", 50 * time.Millisecond: "✓ apply (0.1s)\n",
		1234 * time.Millisecond: "✓ apply (1.2s)\n",
	} {
		var errw bytes.Buffer
		(&stepWriter{w: &errw}).finished("✓", "apply", took)
		if errw.String() != want {
			t.Errorf("%s: got %q, want %q", took, errw.String(), want)
		}
	}
}

func TestProgressIsALogEntryInJSON(t *testing.T) {
	var errw bytes.Buffer
	u := NewUI("v1", nil, nil, &errw)
	core, logs := observer.New(zapcore.InfoLevel)
	u.json, u.Log = true, zap.New(core)
	u.Progress("compile kubelet: 1 of 3 packages")
	u.Progress("compile kubelet: 2 of 3 packages")
	entries := logs.FilterField(zap.String("progress", "compile kubelet: 1 of 3 packages")).Len()
	if entries != 1 || logs.Len() != 1 || errw.Len() > 0 {
		t.Errorf("got %+v and %q, want the first entry only", logs.All(), errw.String())
	}
}

func TestProgressIsDueAfterAnInterval(t *testing.T) {
	start := time.Now()
	s := &stepWriter{reported: start}
	for _, test := range []struct {
		after time.Duration
		want  bool
	}{{29 * time.Second, false}, {30 * time.Second, true}, {59 * time.Second, false}, {61 * time.Second, true}} {
		if got := s.progressDue(start.Add(test.after), progressInterval); got != test.want {
			t.Errorf("after %s: got %v, want %v", test.after, got, test.want)
		}
	}
}

func TestRunningStepFitsTheTerminal(t *testing.T) {
	const line = "… compile kubelet"
	for columns, want := range map[int]string{0: line, 80: line, 17: line, 16: "… compile kubele"} {
		if got := cut(line, columns); got != want {
			t.Errorf("%d columns: got %q, want %q", columns, got, want)
		}
	}
}

func TestNextPageClearsATerminal(t *testing.T) {
	var text bytes.Buffer
	out := newOutput(&text)
	out.terminal = true
	if err := out.NextPage("at noon"); err != nil || text.String() != clearScreen+"at noon\n\n" {
		t.Errorf("got %q, %v", text.String(), err)
	}
}
