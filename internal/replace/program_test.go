package replace

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/internal/artifact/configcheck"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// The program is checked that the manifest's command names. The entrypoint of upstream's images is
// another program.
func TestCheckedProgramIsThatOfTheCommand(t *testing.T) {
	for name, c := range map[string]struct {
		command, image string
		want           []string
		missing        string
		refused        bool
	}{
		"kubeadm's": {command: "    - kube-scheduler\n", want: []string{"kube-scheduler"}},
		"wrapped": {command: "    - /go-runner\n    - --also-stdout\n    - /usr/local/bin/kube-scheduler\n",
			want: []string{"/go-runner", "/usr/local/bin/kube-scheduler"}},
		"missing in another image": {command: "    - /usr/bin/kube-scheduler\n", image: "localhost/new:v1",
			want: []string{"/usr/bin/kube-scheduler"}, missing: "/usr/bin/kube-scheduler", refused: true},
		"missing in the same image": {command: "    - kube-scheduler\n", want: []string{"kube-scheduler"},
			missing: "kube-scheduler"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newTestNode(t, "kubeadm")
			n.original = strings.Replace(n.original, "    - kube-scheduler\n", c.command, 1)
			n.write(t, n.layout.Manifest, n.original)
			deps := n.deps(t)
			var image string
			var command []string
			deps.Binary = func(_ context.Context, i string, words []string, _ string) (configcheck.Binary, error) {
				image, command = i, words
				return configcheck.Binary{Path: n.path("/program"), Missing: c.missing}, nil
			}
			plan, err := DryRun(t.Context(), deps, n.info(), asks(c.image, "binpack"))
			if diff := cmp.Diff(c.want, command); diff != "" {
				t.Errorf("command of image %s (-want +got):\n%s", image, diff)
			}
			if c.refused {
				if err == nil || !problem.IsInvalid(err) ||
					!strings.Contains(err.Error(), "the manifest runs "+c.missing+", which is not in image localhost/new:v1") {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			last := c.command[strings.LastIndex(c.command, "    - "):]
			if want := last + "    - --config=" + plan.ConfigFile + "\n"; !strings.Contains(string(plan.New.Data), want) {
				t.Errorf("no %q in the manifest:\n%s", want, plan.New.Data)
			}
		})
	}
}
