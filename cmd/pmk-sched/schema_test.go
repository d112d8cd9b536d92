package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/api/v1alpha1"
	"github.com/pmk-sched/pmk-sched/test/golden"
)

const filePath = "../../docs/file.md"

func fileSchema(t *testing.T) *spec.Schema {
	t.Helper()
	s := &spec.Schema{}
	if err := json.Unmarshal(v1alpha1.Schema(), s); err != nil {
		t.Fatal(err)
	}
	return s
}

// fileReference is docs/file.md: every field of pmk-sched.yaml.
func fileReference(s *spec.Schema) []byte {
	var b bytes.Buffer
	b.WriteString("# pmk-sched.yaml\n\nGenerated from the types in `api/v1alpha1`; `make schema` writes it.\n\n" +
		"`pmk-sched schema --to-file pmk-sched.schema.json` writes the JSON schema. With this first line of\n" +
		"the file, editors with the YAML language server complete and check it:\n\n" +
		"```yaml\n# yaml-language-server: $schema=pmk-sched.schema.json\n```\n\n" +
		"| field | type | description |\n|---|---|---|\n")
	var walk func(path string, s *spec.Schema)
	walk = func(path string, s *spec.Schema) {
		if path != "" {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", path, typeName(s), strings.Join(strings.Fields(s.Description), " "))
		}
		if s.Items != nil && s.Items.Schema != nil {
			s, path = s.Items.Schema, path+"[]"
		}
		var names []string
		for name := range s.Properties {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			child := s.Properties[name]
			walk(strings.TrimPrefix(path+"."+name, "."), &child)
		}
	}
	walk("", s)
	return b.Bytes()
}

// typeName describes the type of a value in a few words.
func typeName(s *spec.Schema) string {
	switch {
	case len(s.Enum) > 0:
		var values []string
		for _, v := range s.Enum {
			values = append(values, fmt.Sprintf("`%v`", v))
		}
		return strings.Join(values, ", ")
	case len(s.AnyOf) > 0:
		var names []string
		for i := range s.AnyOf {
			names = append(names, typeName(&s.AnyOf[i]))
		}
		return strings.Join(names, " or ")
	case s.Items != nil && s.Items.Schema != nil:
		return "list of " + typeName(s.Items.Schema)
	}
	return strings.Join(s.Type, " or ")
}

func TestReferenceOfTheFileHasEveryField(t *testing.T) {
	got := fileReference(fileSchema(t))
	golden.Equal(t, filePath, got)
	for line := range strings.Lines(string(got)) {
		if strings.HasPrefix(line, "| `spec.") && strings.HasSuffix(line, "|  |\n") &&
			!strings.Contains(line, "rules[].") {
			t.Errorf("a field has no description: %s", line)
		}
	}
}

// yamlBlock matches the YAML blocks of a document.
var yamlBlock = regexp.MustCompile("(?s)```ya?ml\n(.*?)```")

// examplesOf returns every complete file of a kind in documents and examples, by its place.
func examplesOf(t *testing.T, kind string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "bin" || entry.Name() == "test") {
			return fs.SkipDir
		}
		extension := filepath.Ext(path)
		if entry.IsDir() || extension != ".md" && extension != ".yaml" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		blocks := [][][]byte{{nil, text}}
		if extension == ".md" {
			blocks = yamlBlock.FindAllSubmatch(text, -1)
		}
		for i, block := range blocks {
			if bytes.Contains(block[1], []byte("\nkind: "+kind+"\n")) {
				found[fmt.Sprintf("%s, block %d", path, i+1)] = block[1]
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// problemsOf returns what the schema refuses in a file.
func problemsOf(t *testing.T, s *spec.Schema, text []byte) []error {
	t.Helper()
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		return []error{err}
	}
	return validate.NewSchemaValidator(s, nil, "", strfmt.Default).Validate(value).Errors
}

func TestExamplesOfTheFileMatchTheSchema(t *testing.T) {
	s, files := fileSchema(t), examplesOf(t, v1alpha1.Kind)
	if len(files) < 3 {
		t.Fatalf("found %d examples", len(files))
	}
	for place, text := range files {
		if problems := problemsOf(t, s, text); len(problems) > 0 {
			t.Errorf("%s: %v", place, problems)
		}
		if _, err := v1alpha1.Decode(text); err != nil {
			t.Errorf("%s: decode: %v", place, err)
		}
	}
}

func TestSchemaRefusesWhatTheDecoderRefuses(t *testing.T) {
	const head = "apiVersion: pmk-sched.io/v1alpha1\nkind: CustomScheduler\nmetadata: {name: my-scheduler}\n"
	s := fileSchema(t)
	for _, text := range []string{
		"kind: CustomScheduler\n", head + "spec: {preset: binpack}", head + "spec: {replicas: none}", head +
			"spec: {replicas: 0}",
		head + "spec: {extenders: [{urlPrefix: x}]}", head + "spec: {extenders: [{name: a, httpTimeout: 5}]}", head +
			"spec: {rbac: {rules: [{verb: [get]}]}}",
		head + "spec: {source: {plugins: [{content: eA==}]}}",
	} {
		if len(problemsOf(t, s, []byte(text))) == 0 {
			t.Errorf("the schema accepts %q", text)
		}
	}
	for _, text := range []string{
		head, head +
			"spec: {replicas: auto, ports: {secure: 10300}, configuration: {inline: {parallelism: 4}}, resources: {limits: " +
			"{cpu: 1, memory: 64Mi}}}",
		head + "spec: {extenders: [{name: a, httpTimeout: 1.5s, policies: [{name: blockall, args: {x: 1}}]}]}",
	} {
		if problems := problemsOf(t, s, []byte(text)); len(problems) > 0 {
			t.Errorf("%q: %v", text, problems)
		}
	}
}

func TestExamplesOfTestsMatchTheSchema(t *testing.T) {
	s, files := &spec.Schema{}, examplesOf(t, v1alpha1.TestKind)
	if err := json.Unmarshal(v1alpha1.TestSchema(), s); err != nil {
		t.Fatal(err)
	}
	if len(files) < 12 {
		t.Fatalf("found %d examples", len(files))
	}
	for place, text := range files {
		if problems := problemsOf(t, s, text); len(problems) > 0 {
			t.Errorf("%s: %v", place, problems)
		}
		if _, err := v1alpha1.DecodeTest(text); err != nil {
			t.Errorf("%s: decode: %v", place, err)
		}
	}
	const head = "apiVersion: pmk-sched.io/v1alpha1\nkind: SchedulingTest\nexpect:\n- "
	for _, text := range []string{
		"{pod: a, nod: b}", "{pod: a, node: a, count: many}", "{pod: a, node: a, count: {least: 1}}", "{sameAs: {file: a}}",
		"{utilization: {resource: cpu, of: p101, above: 0}}", "{utilization: {below: 1}}", "{pod: a, spread: {atLeast: 1}}",
		"{copies: -3}", "{pod: a, pending: true}", "{steps: [{scenario: none}], copies: 3}",
	} {
		if len(problemsOf(t, s, []byte(head+text+"\n"))) == 0 {
			t.Errorf("the schema accepts %q", text)
		}
	}
}
