package v1alpha1

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// DecodeTest reads a SchedulingTest strictly, as [Decode] reads a scheduler, and validates it.
// Errors have the expectation's line.
func DecodeTest(text []byte) (*SchedulingTest, error) {
	var file struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string `yaml:"kind"`
		Metadata   struct {
			Name string `yaml:"name"`
		} `yaml:"metadata"`
		Objects []TestObjects `yaml:"objects"`
		Steps   []TestStep    `yaml:"steps"`
		Expect  []Expectation `yaml:"expect"`
	}
	var lines struct {
		Expect []yaml.Node `yaml:"expect"`
	}
	if err := checkGivenType(text, TestKind, ""); err != nil {
		return nil, err
	}
	_ = yaml.Unmarshal(text, &lines) // decodeOnly reports errors
	if err := decodeOnly(text, &file, "test"); err != nil {
		return nil, err
	}
	if err := checkType(file.APIVersion, file.Kind, TestKind, ""); err != nil {
		return nil, err
	}
	if len(file.Expect) == 0 {
		return nil, &Error{text: "expect is required"}
	}
	t := &SchedulingTest{Objects: file.Objects, Steps: file.Steps, Expect: file.Expect}
	t.APIVersion, t.Kind, t.Name = APIVersion, TestKind, file.Metadata.Name
	for i := range t.Expect {
		if err := t.Expect[i].complete(t.Steps); err != nil {
			return nil, &Error{text: fmt.Sprintf("line %d: %s", lines.Expect[i].Line, err.text), hint: err.hint}
		}
	}
	return t, nil
}

// IsTest reports whether a file seems to be a SchedulingTest, also if it cannot be decoded.
func IsTest(text []byte) bool { return testKind.Match(text) }

// testKind matches the kind of a file with a test.
var testKind = regexp.MustCompile(`(?m)^["']?kind["']?:[ ]*["']?` + TestKind + `\b`)

// Words returns the expectation's words that name a result.
func (e *Expectation) Words() []string {
	var words []string
	for _, w := range []struct {
		name  string
		given bool
	}{
		{"node", e.Node != ""}, {"nodes", e.Nodes != nil}, {"nodeLabels", e.NodeLabels != nil},
		{"pending", e.Pending != nil}, {"evicted", e.Evicted != nil}, {"moved", e.Moved != nil}, {"evicts", e.Evicts != ""},
		{"spread", e.Spread != nil}, {"requests", e.Requests != nil},
		{"copies", e.Copies != nil}, {"emptyNodes", e.EmptyNodes != nil}, {"utilization", e.Utilization != nil},
		{"sameAs", e.SameAs != nil},
	} {
		if w.given {
			words = append(words, w.name)
		}
	}
	return words
}

// SelectsPods reports whether the expectation is about some of the pods.
func (e *Expectation) SelectsPods() bool { return e.Pod != "" || e.Workload != "" || len(e.Labels) > 0 }

// complete adds default namespaces, and returns an error for words that do not belong together.
func (e *Expectation) complete(steps []TestStep) *Error {
	words := e.Words()
	if len(words) != 1 {
		got := "none"
		if len(words) > 1 {
			got = strings.Join(words, " and ")
		}
		return &Error{text: "expected one of node, nodes, nodeLabels, pending, evicted, moved, evicts, spread, requests, " +
			"copies, emptyNodes, utilization and sameAs, got " + got}
	}
	for _, pattern := range []*string{&e.Pod, &e.Workload, &e.Evicts} {
		if *pattern != "" && !strings.Contains(*pattern, "/") {
			*pattern = "default/" + *pattern
		}
	}
	for _, pattern := range append([]string{e.Pod, e.Workload, e.Evicts, e.Node}, e.Nodes...) {
		if _, err := path.Match(pattern, ""); err != nil {
			return &Error{text: fmt.Sprintf("invalid pattern %q: %v", pattern, err)}
		}
	}
	if e.Steps != nil {
		steps = e.Steps
	}
	return e.check(words[0], steps)
}

// check returns an error for a word that lacks something, or has too much.
func (e *Expectation) check(word string, steps []TestStep) *Error {
	cluster := slices.Contains([]string{"copies", "emptyNodes", "utilization"}, word)
	switch {
	case cluster && e.SelectsPods():
		return &Error{text: word + " is about the whole cluster: pod, workload and labels do not apply"}
	case !cluster && word != "sameAs" && !e.SelectsPods():
		return &Error{text: word + " needs pod, workload or labels"}
	case e.Count != nil && (cluster || slices.Contains([]string{"spread", "requests", "sameAs"}, word)):
		return &Error{text: "count does not apply to " + word}
	case word == "nodes" && len(e.Nodes) == 0, word == "nodeLabels" && len(e.NodeLabels) == 0:
		return &Error{text: word + " is empty"}
	case word == "copies" && (len(steps) == 0 || !steps[len(steps)-1].is("add")):
		return &Error{text: "copies needs steps whose last one is add"}
	case word == "sameAs" && *e.SameAs == SameAs{}:
		return &Error{text: "sameAs needs scheduler, preset or branch"}
	}
	for _, b := range []*Bound{e.Count, e.Copies} {
		if b != nil && b.isEmpty() {
			return noLimit()
		}
	}
	return e.checkNumber()
}

// percentile matches percentiles in utilization.of.
var percentile = regexp.MustCompile(`^p(100|[0-9]{1,2})$`)

// checkNumber checks the words that have fields.
func (e *Expectation) checkNumber() *Error {
	switch {
	case e.Spread != nil:
		if e.Spread.Over == "" {
			return &Error{text: "spread needs over: zone, node, or the key of a label"}
		}
		if e.Spread.isEmpty() && (e.Spread.Each == nil || e.Spread.Each.isEmpty()) {
			return noLimit()
		}
	case e.Requests != nil:
		if e.Requests.Resource == "" {
			return &Error{text: "requests needs resource"}
		}
		if e.Requests.isEmpty() {
			return noLimit()
		}
	case e.EmptyNodes != nil && e.EmptyNodes.isEmpty():
		return noLimit()
	case e.Utilization != nil:
		if e.Utilization.Resource == "" {
			return &Error{text: "utilization needs resource"}
		}
		if e.Utilization.isEmpty() {
			return noLimit()
		}
		if _, ok := e.Utilization.Percentile(); !ok && !slices.Contains([]string{"", "each", "total", "mean"},
			e.Utilization.Of) {
			return &Error{text: fmt.Sprintf("invalid of %q: must be each, total, mean, or a percentile such as p99",
				e.Utilization.Of)}
		}
	}
	return nil
}

func noLimit() *Error {
	return &Error{text: "expected a limit: " + strings.Join(LimitFields(), ", ")}
}

func (l *Limits) isEmpty() bool { return *l == Limits{} }

// Percentile returns the percentile that Of names, if it names one.
func (u *Utilization) Percentile() (int, bool) {
	found := percentile.FindStringSubmatch(u.Of)
	if found == nil {
		return 0, false
	}
	n, err := strconv.Atoi(found[1])
	return n, err == nil
}

// is reports whether the step has a scenario.
func (s TestStep) is(scenario string) bool {
	for i := 0; i+1 < len(s.Node.Content); i += 2 {
		if s.Node.Content[i].Value == "scenario" {
			return s.Node.Content[i+1].Value == scenario
		}
	}
	return false
}
