package documents

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pmk-sched/pmk-sched/test/golden"
)

func someProgram() Program {
	return Program{SHA256: strings.Repeat("03", 32), Go: "go1.18.3", Modules: []Module{
		{"k8s.io/kubernetes", "v1.24.3", "h1:k="}, {"k8s.io/api", "v0.24.3", "h1:a="},
		{"example.com/local", "v0.0.0", ""}, {"example.com/Old", "v2.0.0+incompatible", "h1:o="},
	}}
}

func someOptions() SBOMOptions {
	return SBOMOptions{Name: "kube-scheduler", Version: "v1.24.3", Platform: "linux/amd64", Tool: "v0.1.0",
		Base: "registry.example.com/library/busybox@sha256:" + strings.Repeat("ba", 32)}
}

func TestSBOM(t *testing.T) {
	text, err := NewSBOM(someProgram(), someOptions())
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/sbom.json", text)
	again, err := NewSBOM(someProgram(), someOptions())
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("the second SBOM differs: %v", err)
	}
	o := someOptions()
	o.Base = "sha256:" + strings.Repeat("bb", 32)
	other, err := NewSBOM(someProgram(), o)
	if err != nil || !strings.Contains(string(other), `"name": "base"`) ||
		serial(string(other)) == serial(string(text)) {
		t.Errorf("the SBOM of an image on another base: %v\n%s", err, other)
	}
	o.Base = "registry.example.com/busybox@sha512:" + strings.Repeat("bb", 64)
	other, err = NewSBOM(someProgram(), o)
	if err != nil || strings.Count(string(other), `"SHA-256"`) != 1 { // only of the program
		t.Errorf("the SBOM of an image on a base with another digest: %v\n%s", err, other)
	}
}

func serial(text string) string {
	_, rest, _ := strings.Cut(text, "urn:uuid:")
	return rest[:36]
}

func TestDifferencesOfASBOMFromAProgram(t *testing.T) {
	document, err := NewSBOM(someProgram(), someOptions())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Program)
		want   []string
	}{
		"none": {func(*Program) {}, nil},
		"another binary": {func(p *Program) { p.SHA256 = "04" },
			[]string{"program: the SBOM has sha256 " + strings.Repeat("03", 32) + ", the image 04"}},
		"another compiler": {func(p *Program) { p.Go = "go1.18.4" },
			[]string{"module stdlib: the SBOM has 1.18.3, the image 1.18.4"}},
		"a module less": {func(p *Program) { p.Modules = p.Modules[1:] },
			[]string{"module k8s.io/kubernetes: the SBOM has v1.24.3 h1:k=, the image none"}},
		"a module more": {func(p *Program) { p.Modules = append(p.Modules, Module{"example.com/new", "v1.0.0", "h1:n="}) },
			[]string{"module example.com/new: the SBOM has none, the image v1.0.0 h1:n="}},
		"another sum": {func(p *Program) { p.Modules[1].Sum = "h1:b=" },
			[]string{"module k8s.io/api: the SBOM has v0.24.3 h1:a=, the image v0.24.3 h1:b="}},
	} {
		p := someProgram()
		c.change(&p)
		got, err := CompareSBOM(document, p)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestOnlySomeDifferencesAreListed(t *testing.T) {
	document, err := NewSBOM(Program{Go: "go1.18.3"}, someOptions())
	if err != nil {
		t.Fatal(err)
	}
	for differences, last := range map[int]string{
		maxDifferences:     "module example.com/m10: the SBOM has none, the image v1",
		maxDifferences + 1: "and 1 more modules", maxDifferences + 2: "and 2 more modules",
	} {
		p := Program{Go: "go1.18.3"}
		for i := range differences {
			p.Modules = append(p.Modules, Module{Path: fmt.Sprintf("example.com/m%02d", i+1), Version: "v1"})
		}
		got, err := CompareSBOM(document, p)
		if err != nil || len(got) != min(differences, maxDifferences+1) || got[len(got)-1] != last {
			t.Errorf("%d differences: got %q, %v, the last of which is to be %q", differences, got, err, last)
		}
	}
}

// An image may have a document that another program wrote.
func TestSBOMsOfOtherProgramsAreCompared(t *testing.T) {
	const form = `{"bomFormat":"CycloneDX","metadata":{"component":{%s}},"components":[%s]}`
	const stdlib = `{"name":"stdlib","version":"1.18.3","purl":"pkg:golang/stdlib@1.18.3"%s}`
	for name, c := range map[string]struct {
		component, components string
		want                  []string
	}{
		"another algorithm first": {`"hashes":[{"alg":"MD5","content":"01"},{"alg":"SHA-256","content":"03"}]`,
			fmt.Sprintf(stdlib, ""), nil},
		"no hashes": {"", fmt.Sprintf(stdlib, ""), []string{"program: the SBOM has sha256 none, the image 03"}},
		"another algorithm": {`"hashes":[{"alg":"MD5","content":"03"}]`, fmt.Sprintf(stdlib, ""),
			[]string{"program: the SBOM has sha256 none, the image 03"}},
		"other properties": {`"hashes":[{"alg":"SHA-256","content":"03"}]`,
			fmt.Sprintf(stdlib, `,"properties":[{"name":"license","value":"BSD"}]`), nil},
		"other components": {`"hashes":[{"alg":"SHA-256","content":"03"}]`,
			fmt.Sprintf(stdlib, "") + `,{"name":"busybox","version":"1","purl":"pkg:oci/busybox@1"}`, nil},
	} {
		got, err := CompareSBOM(fmt.Appendf(nil, form, c.component, c.components), Program{Go: "go1.18.3", SHA256: "03"})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	full := func(count int) string {
		return fmt.Sprintf(form, "", strings.Join(slices.Repeat([]string{"{}"}, count), ","))
	}
	for text, accepted := range map[string]bool{
		"": false, "{}": false, "[]": false, `{"bomFormat":"CycloneDX"}`: false,
		`{"bomFormat":"CycloneDX","metadata":{},"components":[]}`:                             false,
		`{"bomFormat":"CycloneDX","metadata":{"component":{}}}`:                               false,
		`{"bomFormat":"SPDX","metadata":{"component":{}},"components":[]}`:                    false,
		`{"bomFormat":"CycloneDX","metadata":{"component":{}},"components":[]}`:               true,
		`{"bomFormat":"CycloneDX","metadata":{"component":{}},"components":[],"version":"x"}`: false,
		full(maxComponents): true, full(maxComponents + 1): false,
	} {
		if _, err := CompareSBOM([]byte(text), someProgram()); (err == nil) != accepted {
			t.Errorf("%.90q: got %v, want accepted: %t", text, err, accepted)
		}
	}
}

func TestSumDigest(t *testing.T) {
	// The example of in-toto, digest_set.md.
	const want = "2a1bb6127fb481c60f67692e22285fb306f3c6ffe62075e0ccf674d7c3adcb8f"
	if got := sumDigest("h1:Khu2En+0gcYPZ2kuIihfswbzxv/mIHXgzPZ018Oty48="); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, sum := range []string{"", "h1:", "h1:a=", "h2:Khu2En+0gcYPZ2kuIihfswbzxv/mIHXgzPZ018Oty48=",
		"Khu2En+0gcYPZ2kuIihfswbzxv/mIHXgzPZ018Oty48=", "h1:Khu2", "h1:Khu2En+0gcYPZ2kuIihfswbzxv/mIHXgzPZ018Oty48=?"} {
		if got := sumDigest(sum); got != "" {
			t.Errorf("%q: got %s", sum, got)
		}
	}
}

// FuzzCompareSBOM searches documents of images that crash the comparison.
func FuzzCompareSBOM(f *testing.F) {
	document, err := NewSBOM(someProgram(), someOptions())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(document)
	f.Add([]byte(`{"bomFormat":"CycloneDX","metadata":{"component":{"hashes":[{}]}},"components":[{"purl":"pkg:golang/"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		differences, err := CompareSBOM(text, someProgram())
		if len(differences) > maxDifferences+2 {
			t.Errorf("%d differences, %v", len(differences), err)
		}
	})
}
