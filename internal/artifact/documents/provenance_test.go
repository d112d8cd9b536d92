package documents

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/test/golden"
)

func someBuild() ProvenanceBuild {
	return ProvenanceBuild{
		Release: "v1.24.3", Source: "git:https://example.com/kubernetes", Commit: strings.Repeat("c", 40), Go: "1.18.3",
		Base:      "registry.example.com/library/busybox@sha256:" + strings.Repeat("ba", 32),
		Plugins:   []Plugin{{Name: "Timestamp", Origin: "builtin:timestamp", SHA256: strings.Repeat("01", 32)}},
		Platforms: []string{"linux/amd64"},
		Modules: []Module{{Path: "example.com/local", Version: "v0.0.0"},
			{Path: "k8s.io/kubernetes", Version: "v1.24.3",
				Sum: "h1:" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{2}, 32))}},
		Version: "v0.1.0", Lock: []byte("kind: Lock\n"),
	}
}

func TestProvenance(t *testing.T) {
	text, err := NewProvenance(someBuild())
	if err != nil {
		t.Fatal(err)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, text, "", "  "); err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/provenance.json", indented.String())
	lock, err := ReadLock(text)
	if err != nil || string(lock) != "kind: Lock\n" {
		t.Errorf("the lock is %q, %v", lock, err)
	}
}

func TestDifferencesOfAProvenanceFromALock(t *testing.T) {
	text, err := NewProvenance(someBuild())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*ProvenanceBuild)
		want   []string
	}{
		"none":                    {func(*ProvenanceBuild) {}, nil},
		"another pmk-sched":       {func(b *ProvenanceBuild) { b.Version = "v0.2.0" }, nil},
		"no plugins but the same": {func(b *ProvenanceBuild) { b.Imports = []string{} }, nil},
		"another base": {func(b *ProvenanceBuild) { b.Base = "sha256:00" }, []string{
			"externalParameters of the provenance differ from the lock",
			"resolvedDependencies of the provenance differ from the lock"}},
		"another compiler": {func(b *ProvenanceBuild) { b.Go = "1.18.4" }, []string{
			"internalParameters of the provenance differ from the lock",
			"resolvedDependencies of the provenance differ from the lock"}},
		"a chosen compiler": {func(b *ProvenanceBuild) { b.GoChosen = true }, []string{
			"externalParameters of the provenance differ from the lock"}},
		"another lock": {func(b *ProvenanceBuild) { b.Lock = nil }, []string{"byproducts of the provenance differ from the lock"}},
	} {
		b := someBuild()
		c.change(&b)
		got, err := CompareProvenance(text, b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	other := bytes.Replace(text, []byte("#builder"), []byte("#other"), 1)
	got, err := CompareProvenance(other, someBuild())
	if err != nil || len(got) != 1 || !strings.HasPrefix(got[0], "builder: ") {
		t.Errorf("another builder: %q, %v", got, err)
	}
	for _, text := range []string{"", "{}", "[]", `{"buildDefinition":{"buildType":"x"}}`,
		`{"buildDefinition":{"buildType":"` + BuildType + `","externalParameters":1}}`} {
		if _, err := CompareProvenance([]byte(text), someBuild()); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

// A build without git, a named base and a version has no such entries.
func TestProvenanceHasOnlyWhatTheBuildHas(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*ProvenanceBuild)
		absent string
	}{
		"commit":  {func(b *ProvenanceBuild) { b.Commit = "" }, `"name":"source"`},
		"base":    {func(b *ProvenanceBuild) { b.Base = "busybox" }, `"name":"base"`},
		"version": {func(b *ProvenanceBuild) { b.Version = "" }, `"version":{"pmk-sched"`},
		"sum":     {func(b *ProvenanceBuild) { b.Modules[1].Sum = "" }, "dirHash1"},
	} {
		b := someBuild()
		all, err := NewProvenance(b)
		if err != nil {
			t.Fatal(err)
		}
		c.change(&b)
		without, err := NewProvenance(b)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(all), c.absent) || strings.Contains(string(without), c.absent) {
			t.Errorf("%s: got %s\nwithout it %s", name, all, without)
		}
	}
}

func TestLockIsReadFromTheByproducts(t *testing.T) {
	const form = `{"buildDefinition":{"buildType":"` + BuildType + `"},"runDetails":{"byproducts":[%s]}}`
	for byproducts, want := range map[string]string{
		`{"name":"other","content":"eA=="},{"name":"pmk-sched.lock","content":"bG9jaw=="}`: "lock",
		`{"name":"other","content":"eA=="}`:                                                "",
		`{"name":"pmk-sched.lock","content":"?"}`:                                          "",
		``: "",
	} {
		got, err := ReadLock(fmt.Appendf(nil, form, byproducts))
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v, want %q", byproducts, got, err, want)
		}
	}
	if got, err := ReadLock([]byte(`{"runDetails":{"byproducts":[{"name":"pmk-sched.lock"}]}}`)); err == nil {
		t.Errorf("another build type: got %q", got)
	}
}

// FuzzCompareProvenance searches documents of images that crash the comparison.
func FuzzCompareProvenance(f *testing.F) {
	text, err := NewProvenance(someBuild())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"buildDefinition":{"buildType":"` + BuildType + `","resolvedDependencies":[null]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := CompareProvenance(text, someBuild()); err != nil {
			return
		}
		if _, err := ReadLock(text); err == nil && !bytes.Contains(text, []byte("yproducts")) {
			t.Log("a lock without byproducts") // JSON may escape the name
		}
	})
}
