package sbom

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pmk-sched/pmk-sched/test/golden"
)

func someProgram() Program {
	return Program{SHA256: strings.Repeat("03", 32), Go: "go1.18.3", Modules: []Module{
		{"k8s.io/kubernetes", "v1.24.3", "h1:k="}, {"k8s.io/api", "v0.24.3", "h1:a="},
		{"example.com/local", "v0.0.0", ""}, {"example.com/Old", "v2.0.0+incompatible", "h1:o="},
	}}
}

func someOptions() Options {
	return Options{Name: "kube-scheduler", Version: "v1.24.3", Platform: "linux/amd64", Tool: "v0.1.0",
		Base: "registry.example.com/library/busybox@sha256:" + strings.Repeat("ba", 32)}
}

func TestSBOM(t *testing.T) {
	text, err := New(someProgram(), someOptions())
	if err != nil {
		t.Fatal(err)
	}
	golden.Equal(t, "testdata/sbom.json", text)
	again, err := New(someProgram(), someOptions())
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("the second SBOM differs: %v", err)
	}
}

func TestBaseOfAnImage(t *testing.T) {
	type component = cyclonedx.Component
	hash := strings.Repeat("bb", 32)
	hashes := &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hash}}
	serials := map[string]bool{}
	for base, want := range map[string][]component{
		"": nil,
		"sha256:" + hash: {{BOMRef: "base@sha256:" + hash, Type: cyclonedx.ComponentTypeContainer, Name: "base",
			Version: "sha256:" + hash, Hashes: hashes}},
		"busybox@sha256:" + hash: {{BOMRef: "base@sha256:" + hash, Type: cyclonedx.ComponentTypeContainer, Name: "busybox",
			Version: "sha256:" + hash, Hashes: hashes,
			PackageURL: "pkg:oci/busybox@sha256%3A" + hash + "?repository_url=busybox"}},
		"example.com/a/b@sha512:00": {{BOMRef: "base@sha512:00", Type: cyclonedx.ComponentTypeContainer,
			Name: "example.com/a/b", Version: "sha512:00",
			PackageURL: "pkg:oci/b@sha512%3A00?repository_url=example.com%2Fa%2Fb"}},
	} {
		o := someOptions()
		o.Base = base
		text, err := New(Program{Go: "go1.18.3"}, o)
		if err != nil {
			t.Fatal(err)
		}
		bom := cyclonedx.BOM{}
		if err := json.Unmarshal(text, &bom); err != nil {
			t.Fatal(err)
		}
		got := slices.DeleteFunc(*bom.Components, func(c component) bool { return c.Name == "stdlib" })
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("base %q (-want +got):\n%s", base, diff)
		}
		if serials[bom.SerialNumber] {
			t.Errorf("base %q: the serial number of another SBOM", base)
		}
		serials[bom.SerialNumber] = true
	}
}

func TestDifferencesOfASBOMFromAProgram(t *testing.T) {
	document, err := New(someProgram(), someOptions())
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
		"a module more": {func(p *Program) { p.Modules = append(p.Modules, Module{"k8s.io/x", "v1.0.0", ""}) },
			[]string{"module k8s.io/x: the SBOM has none, the image v1.0.0"}},
		"another sum": {func(p *Program) { p.Modules[1].Sum = "h1:b=" },
			[]string{"module k8s.io/api: the SBOM has v0.24.3 h1:a=, the image v0.24.3 h1:b="}},
	} {
		p := someProgram()
		c.change(&p)
		got, err := Compare(document, p)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestCompareRefusesOtherDocuments(t *testing.T) {
	const (
		metadata = `"metadata":{"component":{"name":"a"}}`
		form     = "expected a CycloneDX document"
	)
	components := func(n int) string { return `"components":[` + strings.TrimSuffix(strings.Repeat("{},", n), ",") + `]` }
	for text, want := range map[string]string{
		"": "unexpected end of JSON input", "[]": "cannot unmarshal", "{}": form,
		`{"bomFormat":"SPDX",` + metadata + `,` + components(0) + `}`:                    form,
		`{"bomFormat":"CycloneDX",` + components(0) + `}`:                                form,
		`{"bomFormat":"CycloneDX","metadata":{},` + components(0) + `}`:                  form,
		`{"bomFormat":"CycloneDX",` + metadata + `}`:                                     form,
		`{"bomFormat":"CycloneDX",` + metadata + `,` + components(maxComponents+1) + `}`: "the limit is 20000",
		`{"bomFormat":"CycloneDX",` + metadata + `,` + components(maxComponents) + `}`:   "",
	} {
		_, err := Compare([]byte(text), someProgram())
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

// Other tools write hashes of other algorithms, components of other kinds and other properties.
func TestCompareReadsDocumentsOfOtherTools(t *testing.T) {
	const document = `{"bomFormat":"CycloneDX","metadata":{"component":{"name":"a","hashes":[%s]}},"components":[
		{"name":"busybox","version":"1"},
		{"name":"stdlib","version":"1.18.3","purl":"pkg:golang/stdlib@1.18.3","properties":[{"name":"p","value":"x"}]},
		{"name":"m","version":"v1","purl":"pkg:golang/m@v1","properties":[{"name":"p","value":"x"},{"name":"pmk-sched:go.sum","value":"h1:m="}]}]}`
	p := Program{Go: "go1.18.3", SHA256: "02", Modules: []Module{{"m", "v1", "h1:m="}}}
	for hashes, want := range map[string][]string{
		`{"alg":"SHA-1","content":"01"},{"alg":"SHA-256","content":"02"}`: nil,
		`{"alg":"SHA-1","content":"02"}`:                                  {"program: the SBOM has sha256 none, the image 02"},
	} {
		got, err := Compare(fmt.Appendf(nil, document, hashes), p)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("hashes %s: %v (-want +got):\n%s", hashes, err, diff)
		}
	}
	without := strings.Replace(document, `,"hashes":[%s]`, "", 1)
	got, err := Compare([]byte(without), p)
	if diff := cmp.Diff([]string{"program: the SBOM has sha256 none, the image 02"}, got); diff != "" || err != nil {
		t.Errorf("no hashes: %v (-want +got):\n%s", err, diff)
	}
}

func TestFurtherModulesThatDifferAreCounted(t *testing.T) {
	for n, last := range map[int]string{
		maxDifferences:     fmt.Sprintf("module m%02d: the SBOM has v1, the image none", maxDifferences-1),
		maxDifferences + 1: "and 1 more modules",
		maxDifferences + 2: "and 2 more modules",
	} {
		documented := map[string]string{}
		for i := range n {
			documented[fmt.Sprintf("m%02d", i)] = "v1"
		}
		got := compareModules(documented, nil)
		if len(got) != min(n, maxDifferences+1) || got[len(got)-1] != last {
			t.Errorf("%d modules: %q", n, got)
		}
	}
}

func TestSumDigest(t *testing.T) {
	// The example of in-toto, digest_set.md.
	const want = "2a1bb6127fb481c60f67692e22285fb306f3c6ffe62075e0ccf674d7c3adcb8f"
	if got := SumDigest("h1:Khu2En+0gcYPZ2kuIihfswbzxv/mIHXgzPZ018Oty48="); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, sum := range []string{"", "h1:", "h1:a=", "h2:Khu2En+0gcYPZ2kuIihfswbzxv/mIHXgzPZ018Oty48=",
		"Khu2En+0gcYPZ2kuIihfswbzxv/mIHXgzPZ018Oty48=", "h1:Khu2En+0gcYPZ2kuIihfswbzxv/mIHXgzPZ018Oty48=x",
		"h1:Khu2En+0gcYPZ2kuIihfswbzxv/mIHXgzPZ018Oty4=="} {
		if got := SumDigest(sum); got != "" {
			t.Errorf("%q: got %s", sum, got)
		}
	}
}

// FuzzCompare searches documents of images that crash the comparison.
func FuzzCompare(f *testing.F) {
	document, err := New(someProgram(), someOptions())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(document)
	f.Add([]byte(`{"bomFormat":"CycloneDX","metadata":{"component":{"hashes":[{}]}},"components":[{"purl":"pkg:golang/"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		differences, err := Compare(text, someProgram())
		if len(differences) > maxDifferences+2 {
			t.Errorf("%d differences, %v", len(differences), err)
		}
	})
}
