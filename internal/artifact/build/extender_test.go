package build

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

func ownExtender(t *testing.T, given ...plugins.Plugin) (ExtenderOptions, *goTool) {
	t.Helper()
	sources := os.DirFS("../../..")
	mod, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	j := mustJob(t, Environment{})
	t.Cleanup(func() {
		var err error
		if j.close(&err); err != nil {
			t.Error(err)
		}
	})
	return ExtenderOptions{Version: "v1.2.3", Sources: sources, GoMod: mod, Plugins: given}, j.goTool
}

// The committed extender equals the output of a build of it with the bundled plugins.
func TestCommittedExtenderIsWhatWouldBeGenerated(t *testing.T) {
	o, tool := ownExtender(t)
	set, err := extenderSet(t.Context(), tool, o, "1.26.0")
	if err != nil {
		t.Fatal(err)
	}
	registrations, err := extenderRegistrations(set)
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "../../../cmd/pmk-extender/plugins.go", registrations)
}

// An extender is quick to build because Kubernetes is not in it.
func TestExtenderNeedsNoKubernetes(t *testing.T) {
	o, tool := ownExtender(t)
	own, err := readOwnSource(o)
	if err != nil {
		t.Fatal(err)
	}
	set, err := extenderSet(t.Context(), tool, o, "1.26.0")
	if err != nil {
		t.Fatal(err)
	}
	files, err := extenderFiles(o, own, set, pluginTarget(own, own.Pins, "", "1.26.0"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range files {
		switch {
		case strings.HasSuffix(name, "go.mod") && strings.Contains(string(data), kubernetes+" "):
			t.Errorf("%s requires Kubernetes:\n%s", name, data)
		case strings.Contains(name, "scheduler/adapter/") || strings.HasSuffix(name, "_test.go"):
			t.Errorf("%s is in the generated module", name)
		}
	}
	for _, name := range []string{"go.mod", "cmd/pmk-extender/main.go", "pmk-sched/go.mod",
		"pmk-sched/scheduler/extender/handler.go", "pmk-sched/scheduler/plugins/loadaware/loadaware.go"} {
		if files[name] == nil {
			t.Errorf("%s is not in the generated module", name)
		}
	}
}

func TestExtenderRefusesNativePlugins(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/native\n\ngo 1.24\n",
		"native.go": `package native

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	framework "k8s.io/kubernetes/pkg/scheduler/framework"
)

const Name = "Native"

type Native struct{}

func (n *Native) Name() string { return Name }

func New(_ context.Context, _ runtime.Object, _ framework.Handle) (framework.Plugin, error) { return &Native{}, nil }
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o, tool := ownExtender(t, plugins.Plugin{Dir: dir})
	_, err := extenderSet(t.Context(), tool, o, "1.26.0")
	if !problem.IsInvalid(err) || !strings.Contains(err.Error(), "scheduling framework, which an extender does not have") {
		t.Errorf("got %v", err)
	}
}
