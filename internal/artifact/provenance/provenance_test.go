package provenance

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/test/golden"
)

func someBuild() Build {
	return Build{
		Release: "v1.24.3", Source: "git:https://example.com/kubernetes", Commit: strings.Repeat("c", 40), Go: "1.18.3",
		Base:      "registry.example.com/library/busybox@sha256:" + strings.Repeat("ba", 32),
		Plugins:   []Plugin{{Name: "Timestamp", Origin: "builtin:timestamp", SHA256: strings.Repeat("01", 32)}},
		Platforms: []string{"linux/amd64"},
		Modules: []Module{{Path: "example.com/local", Version: "v0.0.0"},
			{Path: "k8s.io/kubernetes", Version: "v1.24.3", Digest: strings.Repeat("02", 32)}},
		Version: "v0.1.0", Lock: []byte("kind: Lock\n"),
	}
}

func TestProvenance(t *testing.T) {
	text, err := New(someBuild())
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
	text, err := New(someBuild())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Build)
		want   []string
	}{
		"none":                    {func(*Build) {}, nil},
		"another pmk-sched":       {func(b *Build) { b.Version = "v0.2.0" }, nil},
		"no plugins but the same": {func(b *Build) { b.Imports = []string{} }, nil},
		"another base": {func(b *Build) { b.Base = "sha256:00" }, []string{
			"externalParameters of the provenance differ from the lock",
			"resolvedDependencies of the provenance differ from the lock"}},
		"another compiler": {func(b *Build) { b.Go = "1.18.4" }, []string{
			"internalParameters of the provenance differ from the lock",
			"resolvedDependencies of the provenance differ from the lock"}},
		"a chosen compiler": {func(b *Build) { b.GoChosen = true }, []string{
			"externalParameters of the provenance differ from the lock"}},
		"another lock": {func(b *Build) { b.Lock = nil }, []string{"byproducts of the provenance differ from the lock"}},
	} {
		b := someBuild()
		c.change(&b)
		got, err := Compare(text, b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	other := bytes.Replace(text, []byte("#builder"), []byte("#other"), 1)
	if got, err := Compare(other, someBuild()); err != nil || len(got) != 1 || !strings.HasPrefix(got[0], "builder: ") {
		t.Errorf("another builder: %q, %v", got, err)
	}
}

func TestDocumentsThatAreNoProvenanceAreRefused(t *testing.T) {
	lock := `{"name":"pmk-sched.lock","content":"YQ=="}`
	document := func(byproducts string) string {
		return `{"buildDefinition":{"buildType":"` + BuildType + `"},"runDetails":{"byproducts":[` + byproducts + `]}}`
	}
	for text, want := range map[string]struct{ lock, err string }{
		"": {"", "unexpected end of JSON input"}, "[]": {"", "cannot unmarshal"},
		"{}":                                    {"", `got ""`},
		`{"buildDefinition":{"buildType":"x"}}`: {"", `got "x"`},
		document(""):                            {"", "it has no pmk-sched.lock"},
		document(`{"name":"a","content":"Yg=="}`):         {"", "it has no pmk-sched.lock"},
		document(`{"name":"a","content":"Yg=="},` + lock): {"a", ""},
	} {
		got, err := ReadLock([]byte(text))
		if string(got) != want.lock || (err == nil) != (want.err == "") || err != nil && !strings.Contains(err.Error(), want.err) {
			t.Errorf("%q: lock %q, %v", text, got, err)
		}
		if _, err := Compare([]byte(text), someBuild()); (err == nil) == (want.err != "" && text != document("") &&
			!strings.Contains(want.err, "no pmk-sched.lock")) {
			t.Errorf("%q: compared with %v", text, err)
		}
	}
}

// A scheduler from a directory has no commit, and the base of a local build no digest.
func TestProvenanceHasOnlyTheDependenciesWithADigest(t *testing.T) {
	b := Build{Go: "1.18.3", Base: "busybox:1.36", Source: "/src"}
	want := predicate{
		BuildDefinition: definition{BuildType: BuildType,
			ExternalParameters: external{Source: "/src", Base: "busybox:1.36", Plugins: []Plugin{}, Imports: []string{},
				Platforms: []string{}},
			InternalParameters:   internal{Go: "1.18.3"},
			ResolvedDependencies: []resource{{URI: "pkg:golang/toolchain@1.18.3"}}},
		RunDetails: details{Builder: builder{ID: Builder}, Byproducts: []resource{{
			Name: "pmk-sched.lock", MediaType: "application/yaml",
			Digest: map[string]string{"sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}}}},
	}
	if diff := cmp.Diff(want, newPredicate(b)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzCompare searches documents of images that crash the comparison.
func FuzzCompare(f *testing.F) {
	text, err := New(someBuild())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"buildDefinition":{"buildType":"` + BuildType + `","resolvedDependencies":[null]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := Compare(text, someBuild()); err != nil {
			return
		}
		if _, err := ReadLock(text); err == nil && !bytes.Contains(text, []byte("yproducts")) {
			t.Log("a lock without byproducts") // JSON may escape the name
		}
	})
}
