package build

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
)

// The code of a plugin runs as soon as its program starts, and it may be code of a cluster.
func TestProgramsWithPluginsAreCheckedInIsolation(t *testing.T) {
	t.Parallel()
	p := newProxy(t)
	p.release(t, testRelease, framework(t, p))
	o := p.options(t)
	o.Sources = apiSources(t)
	var ran []string
	var printed string
	var failed error
	o.Isolate = func(_ context.Context, _, program string, args ...string) (string, error) {
		ran = append(ran, filepath.Base(program)+" "+strings.Join(args, " "))
		return printed, failed
	}
	mustRun(t, o)
	if len(ran) > 0 {
		t.Errorf("without plugins: isolated %q", ran)
	}

	o.Plugins = []plugins.Plugin{{Dir: filepath.Join(pluginDirs(t), "portable")}}
	printed = "Kubernetes v1.0.0\n"
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "v1.0.0") {
		t.Errorf("another version: %v", err)
	}
	printed, failed = "Kubernetes "+testRelease, errors.New("exit status 2")
	if _, err := Run(t.Context(), o); !errors.Is(err, failed) {
		t.Errorf("a program that fails: %v", err)
	}
	printed, failed, ran = "", ErrNotRun, nil
	if mustRun(t, o); len(ran) != 1 || ran[0] != "kube-scheduler --version" {
		t.Errorf("isolated %q", ran)
	}
	o.Plugins = []plugins.Plugin{{Builtin: "blockall"}}
	printed, failed = "a plugin prints this\nKubernetes "+testRelease+"\n", nil
	mustRun(t, o)
}
