package replace

import (
	"os/exec"
	"strings"
	"testing"
)

// A shell reads the flags that it read before, and --config after them.
func TestSchedulerFlagKeepsTheOtherFlagsAsAShellReadsThem(t *testing.T) {
	for _, settings := range []string{
		`export SCHEDULER_FLAGS=""`,
		`SCHEDULER_FLAGS=--v=2`,
		`SCHEDULER_FLAGS="--v=2,--a=\"b\",--c=$HOME"`,
		`SCHEDULER_FLAGS='--v=2,--a="b",--c=$HOME'`,
		`SCHEDULER_FLAGS='--a=\n,--c="'`,
	} {
		before := read(t, settings)
		got, err := withSchedulerFlag("kube.env", []byte(settings+"\n"), "/c.yaml")
		if err != nil {
			t.Errorf("%s: %v", settings, err)
			continue
		}
		want := strings.TrimPrefix(before+",--config=/c.yaml", ",")
		if after := read(t, string(got)); after != want {
			t.Errorf("%s became %s: a shell reads %q, want %q", settings, got, after, want)
		}
	}
}

// read returns the value of SCHEDULER_FLAGS in a shell.
func read(t *testing.T, settings string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "sh", "-c",
		settings+"\nprintf %s \"$SCHEDULER_FLAGS\"").CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", settings, err, output)
	}
	return string(output)
}

func TestSchedulerFlagRefusesWhatItCannotRead(t *testing.T) {
	for _, settings := range []string{`SCHEDULER_FLAGS="a\"`, `SCHEDULER_FLAGS=a\ b`, `SCHEDULER_FLAGS="a"'b'`,
		`SCHEDULER_FLAGS=--v=2 # x`} {
		if got, err := withSchedulerFlag("kube.env", []byte(settings+"\n"), "/c.yaml"); err == nil {
			t.Errorf("%s became %s", settings, got)
		}
	}
}
