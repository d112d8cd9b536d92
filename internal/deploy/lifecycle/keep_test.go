package lifecycle

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/apply"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/internal/deploy"
	"github.com/pmk-sched/pmk-sched/internal/deploy/spec"
)

// deployedFor is a deployed revision of a request.
func deployedFor(t *testing.T, request v1alpha1.CustomScheduler) *apply.Revision {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"request": request, "scheduler": map[string]any{"Name": "s", "Configuration": map[string]any{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &apply.Revision{RevisionInfo: apply.RevisionInfo{Name: "s", Namespace: "kube-system", Number: 3,
		Status: apply.Deployed}, Record: text}
}

// Without -f, --config and --preset a scheduler keeps what runs, and the output says so.
func TestDeployKeepsTheSettingsOfTheDeployedScheduler(t *testing.T) {
	dir := t.TempDir()
	file, config := filepath.Join(dir, "pmk-sched.yaml"), filepath.Join(dir, "config.yaml")
	for name, text := range map[string]string{
		file:   "apiVersion: pmk-sched.io/v1alpha1\nkind: CustomScheduler\nmetadata: {name: s}\nspec: {image: {reference: i:2}}\n",
		config: "kind: KubeSchedulerConfiguration\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	recorded := v1alpha1.CustomScheduler{}
	recorded.Spec = v1alpha1.CustomSchedulerSpec{
		Image:         v1alpha1.Image{Reference: "i:1", RequireSignature: "a key"},
		Source:        v1alpha1.Source{Plugins: []v1alpha1.Plugin{{Builtin: "timestamp"}}},
		Configuration: v1alpha1.Configuration{File: "own.yaml", Inline: "kind: KubeSchedulerConfiguration # own\n"},
		Args:          []string{"--v=4"}, Replicas: 2,
	}
	plain := v1alpha1.CustomScheduler{}
	plain.Spec.Image.Reference = "i:1"
	const own = "kind: KubeSchedulerConfiguration # own\n"
	for name, c := range map[string]struct {
		recorded                   *v1alpha1.CustomScheduler
		flags                      spec.Flags
		preset, configuration, arg string
		replicas                   v1alpha1.AutoInt
		message                    string
	}{
		"first deployment": {flags: spec.Flags{}},
		"the image": {&recorded, spec.Flags{}, "", own, "--v=4", 2,
			"note: kept from revision 3 of s: configuration (own.yaml), replicas, args; --preset default"},
		"another setting": {&recorded, spec.Flags{Replicas: pointer(3)}, "", own, "--v=4", 3,
			"note: kept from revision 3 of s: configuration (own.yaml), args; --preset default"},
		"nothing to keep": {recorded: &plain},
		"default preset": {&recorded, spec.Flags{Preset: "default"}, "default", "", "", 0,
			"warning: settings of revision 3 of s are not kept: replicas, args; name its file with -f"},
		"configuration": {&recorded, spec.Flags{Config: config, Replicas: pointer(2)}, "",
			"kind: KubeSchedulerConfiguration\n", "", 2,
			"warning: settings of revision 3 of s are not kept: args; name its file with -f"},
		"file": {recorded: &recorded, flags: spec.Flags{File: file}},
	} {
		t.Run(name, func(t *testing.T) {
			message := ""
			s := &session.Session{
				Warn: func(text string) { message = "warning: " + text }, Note: func(text string) { message = "note: " + text },
			}
			ledger := recordedLedger{}
			if c.recorded != nil {
				ledger.revision = deployedFor(t, *c.recorded)
			}
			c.flags.Name, c.flags.Image = "s", "i:2"
			sp, err := spec.Read(c.flags)
			if err != nil {
				t.Fatal(err)
			}
			kept, err := keepDeployed(t.Context(), s, deploy.Deps{Cluster: ledger}, sp)
			if err != nil {
				t.Fatal(err)
			}
			request, facts, err := kept.Scheduler()
			if err != nil {
				t.Fatal(err)
			}
			preset, configuration, _ := deploy.Configuration(request)
			got := request.Spec
			if preset != c.preset || string(configuration) != c.configuration || strings.Join(got.Args, " ") != c.arg ||
				got.Replicas != c.replicas || facts.Image != "i:2" || len(got.Source.Plugins) > 0 ||
				got.Image.RequireSignature != "" {
				t.Errorf("got preset %q, configuration %q, args %q, %d replicas, image %s, %+v", preset, configuration, got.Args,
					got.Replicas, facts.Image, got)
			}
			if !strings.HasPrefix(message, c.message) || (message == "") != (c.message == "") {
				t.Errorf("message %q, want %q", message, c.message)
			}
		})
	}
}

func pointer(n int) *int { return &n }

// A configuration that cannot be read is not replaced by the default one without a word.
func TestDeployRefusesToDropAConfigurationThatCannotBeRead(t *testing.T) {
	damaged := &apply.Revision{RevisionInfo: apply.RevisionInfo{Name: "s", Number: 3, Status: apply.Deployed},
		Damage: errors.New("it is damaged")}
	unrecorded := &apply.Revision{RevisionInfo: apply.RevisionInfo{Name: "s", Number: 3, Status: apply.Deployed}}
	extender := &apply.Revision{
		RevisionInfo: apply.RevisionInfo{Name: "s", Number: 3, Status: apply.Deployed},
		Objects: []*unstructured.Unstructured{{
			Object: map[string]any{"kind": "Deployment", "metadata": map[string]any{
				"labels": map[string]any{ownership.LabelName: ownership.Extender}}},
		}},
	}
	for name, c := range map[string]struct {
		revision *apply.Revision
		preset   string
		refused  bool
	}{
		"damaged": {damaged, "", true}, "damaged, with a preset": {damaged, "default", false},
		"unrecorded": {unrecorded, "", true}, "extender": {extender, "", false},
	} {
		sp, err := spec.Read(spec.Flags{Name: "s", Image: "i:2", Preset: c.preset})
		if err != nil {
			t.Fatal(err)
		}
		d := deploy.Deps{Cluster: recordedLedger{revision: c.revision}}
		kept, err := keepDeployed(t.Context(), &session.Session{}, d, sp)
		hints := strings.Join(problem.Hints(err), " ")
		if (err != nil) != c.refused || c.refused != strings.Contains(hints, "--preset") || !c.refused && kept != sp {
			t.Errorf("%s: got %v, hints %q", name, err, hints)
		}
	}
}
