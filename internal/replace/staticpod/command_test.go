package staticpod

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// kops and GCE start the scheduler with the log runner of upstream's images.
func TestFlagsOfAProgramThatIsWrapped(t *testing.T) {
	const program = "/usr/local/bin/kube-scheduler"
	words := func(text string) []string { return strings.Fields(text) }
	for name, c := range map[string]struct {
		command, args    string
		programs, flags  string
		changed, refused string
	}{
		"command": {command: "kube-scheduler --v=2", programs: "kube-scheduler", flags: "--v=2",
			changed: "kube-scheduler --config=/c --v=2"},
		"command and args": {command: "kube-scheduler", args: "--v=2", programs: "kube-scheduler", flags: "--v=2",
			changed: "kube-scheduler | --config=/c --v=2"},
		"args": {args: "--v=2", flags: "--v=2", changed: " | --config=/c --v=2"},
		"program in args": {args: program + " --v=2", programs: program, flags: "--v=2",
			changed: " | " + program + " --config=/c --v=2"},
		"wrapped in command": {command: "/go-runner --also-stdout=true " + program + " --v=2", programs: "/go-runner " +
			program, flags: "--v=2", changed: "/go-runner --also-stdout=true " + program + " --config=/c --v=2"},
		"wrapped in args": {command: "/go-runner", args: "--log-file=/l --also-stdout " + program + " --v=2",
			programs: "/go-runner " + program, flags: "--v=2", changed: "/go-runner | --log-file=/l --also-stdout " + program +
				" --config=/c --v=2"},
		"wrapped, flags apart": {command: "/kube-log-runner -log-file /l -- " + program, args: "--config=/old",
			programs: "/kube-log-runner " + program, flags: "--config=/old", changed: "/kube-log-runner -log-file /l -- " +
				program + " | --config=/c"},
		"wrapped, only args": {args: "/go-runner " + program, programs: "/go-runner " + program,
			changed: " | /go-runner " + program + " --config=/c"},
		"config of the runner": {command: "/go-runner --config=/r " + program, programs: "/go-runner " + program,
			changed: "/go-runner --config=/r " + program + " --config=/c"},
		"shell": {command: "/bin/sh -c", args: "exec " + program, refused: `runs "/bin/sh"`},
		"wrapped shell": {command: "/go-runner --log-file kube-scheduler sh -c", args: program,
			refused: `runs "/go-runner"`},
		"runner alone": {command: "/go-runner --also-stdout", refused: `runs "/go-runner"`},
		"nothing":      {refused: "neither a command nor arguments"},
	} {
		t.Run(name, func(t *testing.T) {
			container := &corev1.Container{Name: "kube-scheduler", Command: words(c.command), Args: words(c.args)}
			if got := strings.Join(Programs(container, "kube-scheduler"), " "); got != c.programs {
				t.Errorf("programs: got %q, want %q", got, c.programs)
			}
			flags, err := Words(container, "kube-scheduler")
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("want an error with %q, got %v", c.refused, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.flags, strings.Join(flags, " ")); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
			change := Change{Container: "kube-scheduler", Program: "kube-scheduler", Config: "/c"}
			if err := change.flagIn(container); err != nil {
				t.Fatal(err)
			}
			got := strings.Join(container.Command, " ")
			if len(container.Args) > 0 {
				got += " | " + strings.Join(container.Args, " ")
			}
			if diff := cmp.Diff(c.changed, got); diff != "" {
				t.Errorf("changed (-want +got):\n%s", diff)
			}
		})
	}
}
