//go:build linux && releases

package integration

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"github.com/pmk-sched/pmk-sched/internal/artifact/build/plugins"
	"github.com/pmk-sched/pmk-sched/internal/artifact/programs"
)

// schedulerPlugins is the module whose tests run with the bundled plugins in place of its own.
const schedulerPlugins = "sigs.k8s.io/scheduler-plugins"

// releases are the releases of Kubernetes with which its versions are compiled. The module proxy
// does not serve all modules of the patches that they name, and of v0.35.7 it serves no source.
var releases = map[string]string{"v0.32.7": "v1.32.2", "v0.34.7": "v1.34.2"}

// replaced is a bundled plugin and the tests of the plugin that it replaces.
type replaced struct {
	builtin, theirs string
	// tests matches the tests of the plugin.
	tests string
	// texts are the messages that the tests expect, and those of the bundled plugin.
	texts map[string]string
	// differ matches the tests that may fail with the bundled plugin by design. Its README has the
	// reasons.
	differ string
}

var replacements = []replaced{
	{builtin: "coscheduling", theirs: "Coscheduling", tests: `^(TestCoschedulingPlugin|TestPodCompleted|TestPodgroupBackoff)$`},
	{builtin: "elasticquota", theirs: "CapacityScheduling", tests: `^TestCapacityScheduling$`},
	{builtin: "numaaware", theirs: "NodeResourceTopologyMatch", tests: `^TestTopology(Match|Cache)Plugin`,
		texts: map[string]string{
			`"cannot align container"`:               `"no NUMA node has room for the pod"`,
			`"cannot align init container"`:          `"no NUMA node has room for the pod"`,
			`"scoringStrategy.type: Invalid value:"`: `"strategy: \"incorrect\" is neither"`,
		},
		differ: `balanced-allocation|LeastNUMANodes|DiscardReservedNodes|^TestTopologyCachePluginWithPodFingerprintUpdates`},
}

// Profiles that enable a plugin of scheduler-plugins have the bundled one instead, at its own
// extension points and with arguments of the same meaning.
const replacingSource = `package adapted

import (
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// points are the extension points of the bundled plugins, by the name under which they are
// registered. After PostFilter of DefaultPreemption comes PostFilter of the plugin.
var points = map[string][]string{
	"Coscheduling":              {"PreFilter", "PostFilter", "Reserve", "Permit"},
	"CapacityScheduling":        {"PreFilter", "Filter", "PostFilter", "Reserve"},
	"NodeResourceTopologyMatch": {"PreFilter", "Filter", "PreScore", "Score", "Reserve"},
}

func Change(registry frameworkruntime.Registry, profiles []config.KubeSchedulerProfile) ([]config.KubeSchedulerProfile, error) {
	var all []config.KubeSchedulerProfile
	for i := range profiles {
		all = append(all, *profiles[i].DeepCopy())
	}
	for _, o := range plugins() {
		if _, used := registry[o.Name]; !used {
			continue
		}
		registry[o.Name] = o.Factory
		for i := range all {
			if err := replace(&all[i], o.Name); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

func replace(p *config.KubeSchedulerProfile, name string) error {
	sets := reflect.ValueOf(p.Plugins).Elem()
	enabled, weight := false, int32(0)
	for i := 0; i < sets.NumField(); i++ {
		set, ok := sets.Field(i).Addr().Interface().(*config.PluginSet)
		if !ok {
			continue
		}
		var others []config.Plugin
		for _, one := range set.Enabled {
			if one.Name != name {
				others = append(others, one)
				continue
			}
			enabled = true
			weight = max(weight, one.Weight)
		}
		set.Enabled = others
	}
	if !enabled {
		return nil
	}
	if len(p.Plugins.QueueSort.Enabled) == 0 {
		p.Plugins.QueueSort = config.PluginSet{Enabled: []config.Plugin{{Name: "PrioritySort"}}}
	}
	for _, point := range points[name] {
		set := sets.FieldByName(point).Addr().Interface().(*config.PluginSet)
		if point == "PostFilter" {
			set.Enabled = append(set.Enabled, config.Plugin{Name: "DefaultPreemption"})
		}
		set.Enabled = append(set.Enabled, config.Plugin{Name: name, Weight: weight})
	}
	ours := map[string]interface{}{}
	var others []config.PluginConfig
	for _, one := range p.PluginConfig {
		if one.Name != name {
			others = append(others, one)
			continue
		}
		var err error
		if ours, err = translate(name, one.Args); err != nil {
			return err
		}
	}
	raw, err := json.Marshal(ours)
	if err != nil {
		return err
	}
	p.PluginConfig = append(others, config.PluginConfig{Name: name,
		Args: &runtime.Unknown{Raw: raw, ContentType: runtime.ContentTypeJSON}})
	fmt.Println("Replaced", name)
	return nil
}

// translate returns arguments of the bundled plugin.
func translate(name string, args runtime.Object) (map[string]interface{}, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	var theirs struct {
		PermitWaitingTimeSeconds, PodGroupBackoffSeconds int
		ScoringStrategy                                  struct{ Type string }
	}
	if err := json.Unmarshal(raw, &theirs); err != nil {
		return nil, err
	}
	ours := map[string]interface{}{}
	switch name {
	case "Coscheduling":
		ours["timeout"] = fmt.Sprintf("%ds", theirs.PermitWaitingTimeSeconds)
		if s := theirs.PodGroupBackoffSeconds; s > 0 {
			ours["backoff"] = map[string]string{"initial": fmt.Sprintf("%ds", s)}
		}
	case "NodeResourceTopologyMatch":
		switch strategy := theirs.ScoringStrategy.Type; strategy {
		case "BalancedAllocation", "LeastNUMANodes":
		default:
			ours["strategy"] = strategy
		}
	}
	return ours, nil
}
`

// Every test of scheduler-plugins passes with the bundled plugins too, but those that differ by
// design.
func TestBundledPluginsPassTheTestsOfSchedulerPlugins(t *testing.T) {
	for _, version := range chosen(slices.Sorted(maps.Keys(releases))...) {
		t.Run(version, func(t *testing.T) {
			m := newReplacing(t, version, releases[version])
			for _, r := range replacements {
				t.Run(r.theirs, func(t *testing.T) { m.replace(t, r) })
			}
		})
	}
}

// replacing is the tests of scheduler-plugins with its own plugins and with the bundled ones.
type replacing struct {
	theirs, ours, dir string
	env               []string
}

// newReplacing compiles the tests of a version with a release of Kubernetes.
func newReplacing(t *testing.T, version, release string) replacing {
	t.Helper()
	if release == "" {
		t.Fatalf("unknown version %s of %s", version, schedulerPlugins)
	}
	var all []plugins.Plugin
	for _, r := range replacements {
		all = append(all, plugins.Plugin{Builtin: r.builtin, Name: r.theirs})
	}
	m := newModule(t, release, all...)
	m.run(t, "mod", "edit", "-require="+schedulerPlugins+"@"+version)
	m.adapt(t, replacingSource)
	var module struct{ Dir, GoMod string }
	downloaded := m.run(t, "mod", "download", "-json", schedulerPlugins+"@"+version)
	if err := json.Unmarshal([]byte(downloaded), &module); err != nil {
		t.Fatal(err)
	}
	m.raise(t, module.GoMod)
	source := m.local(t, schedulerPlugins, module.Dir)
	m.replaceTexts(t, filepath.Join(source, "test/integration"))
	r := replacing{dir: m.layOut(t, source), env: environment(t, release)}
	const tests = schedulerPlugins + "/test/integration"
	r.theirs, r.ours = m.compile(t, tests, "", false), m.compile(t, tests, "", true)
	return r
}

// raise gives the module the versions that a go.mod requires, where they are newer than those that
// it is bound to: controller-runtime does not compile with the modules of an older Kubernetes.
func (m *module) raise(t *testing.T, goMod string) {
	t.Helper()
	required := map[string]string{}
	for _, r := range m.parse(t, goMod).Require {
		required[r.Mod.Path] = r.Mod.Version
	}
	args := []string{"mod", "edit"}
	for _, r := range m.parse(t, filepath.Join(m.dir, "go.mod")).Replace {
		path, version := r.Old.Path, required[r.Old.Path]
		if !strings.HasPrefix(path, "k8s.io/") && semver.Compare(version, r.New.Version) > 0 {
			args = append(args, "-replace="+path+"="+path+"@"+version)
		}
	}
	m.run(t, args...)
}

func (m *module) parse(t *testing.T, file string) *modfile.File {
	t.Helper()
	parsed, err := modfile.Parse(file, []byte(m.read(t, file)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// layOut returns a directory in which the tests find the definitions of their resources. In the
// repository manifests/crds has symbolic links to them, which modules do not have.
func (m *module) layOut(t *testing.T, source string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(source, "manifests", "*", "crd.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("find the definitions in %s: %v", source, err)
	}
	for _, file := range files {
		m.write(t, filepath.Join("laid/manifests/crds", filepath.Base(filepath.Dir(file))+".yaml"), m.read(t, file))
	}
	dir := filepath.Join(m.dir, "laid/test/integration")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// replaceTexts adds the files of a directory with the texts of the bundled plugins to the overlay.
func (m *module) replaceTexts(t *testing.T, dir string) {
	t.Helper()
	var table struct{ Replace map[string]string }
	if err := json.Unmarshal([]byte(m.read(t, m.overlay)), &table); err != nil {
		t.Fatal(err)
	}
	var pairs []string
	for _, r := range replacements {
		for theirs, ours := range r.texts {
			pairs = append(pairs, theirs, ours)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text := m.read(t, file)
		if changed := strings.NewReplacer(pairs...).Replace(text); changed != text {
			table.Replace[file] = m.write(t, filepath.Join("overlay", filepath.Base(file)), changed)
		}
	}
	text, err := json.Marshal(table)
	if err != nil {
		t.Fatal(err)
	}
	m.write(t, "overlay/overlay.json", string(text))
}

// environment returns the variables by which envtest finds the API server of a release, and etcd.
func environment(t *testing.T, release string) (env []string) {
	t.Helper()
	for name, path := range find(t, release, "kube-apiserver", programs.Etcd) {
		env = append(env, "TEST_ASSET_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))+"="+path)
	}
	return env
}

// replace runs the tests of a plugin with it and with the bundled one.
func (m replacing) replace(t *testing.T, r replaced) {
	args := []string{"-test.run", r.tests}
	theirs := &side{binary: m.theirs, dir: m.dir, args: args, env: m.env}
	ours := &side{binary: m.ours, dir: m.dir, args: args, env: m.env, prints: "Replaced " + r.theirs}
	theirs.run(t)
	ours.run(t)
	t.Logf("with %s: %s; with %s of pmk-sched: %s", r.theirs, theirs, r.builtin, ours)
	if theirs.ran() != ours.ran() {
		t.Errorf("%d tests ran with %s, %d with %s", theirs.ran(), r.theirs, ours.ran(), r.builtin)
	}
	differ := regexp.MustCompile(cmp.Or(r.differ, "^$"))
	for _, test := range leaves(ours.outcome.Failed) {
		switch {
		case differ.MatchString(test):
			t.Logf("%s differs with %s", test, r.builtin)
		case !slices.Contains(theirs.outcome.Failed, test):
			t.Errorf("%s fails only with %s:\n%s", test, r.builtin, ours.output[test])
		}
	}
	for _, test := range theirs.outcome.Failed {
		t.Logf("%s fails with %s: %s", test, r.theirs, theirs.output[test])
	}
}

// leaves returns the tests without those that failed because a subtest did.
func leaves(failed []string) []string {
	return slices.DeleteFunc(slices.Clone(failed), func(test string) bool {
		parent := regexp.MustCompile("^" + regexp.QuoteMeta(test) + "/")
		return slices.ContainsFunc(failed, parent.MatchString)
	})
}
