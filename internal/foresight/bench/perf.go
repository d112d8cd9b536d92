package bench

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/base/plural"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
)

// perfCase is a test case for scheduler_perf (test/integration/scheduler_perf in
// kubernetes/kubernetes): the fields that are read.
type perfCase struct {
	Name                   string           `json:"name"`
	DefaultPodTemplatePath string           `json:"defaultPodTemplatePath"`
	FeatureGates           map[string]bool  `json:"featureGates"`
	WorkloadTemplate       []map[string]any `json:"workloadTemplate"`
	Workloads              []perfWorkload   `json:"workloads"`
}

type perfWorkload struct {
	Name         string          `json:"name"`
	Params       map[string]any  `json:"params"`
	FeatureGates map[string]bool `json:"featureGates"`
}

// parsePerf reads a workload from a file in scheduler_perf's format. which is CASE/WORKLOAD. read
// returns a template by the path in the file. The errors are about the user's input (package
// problem).
func parsePerf(file string, text []byte, which string, read func(path string) ([]byte, error)) (*Workload, error) {
	var cases []perfCase
	if err := yaml.Unmarshal(text, &cases); err != nil {
		return nil, problem.Invalidf("", "read workload %s: expected a list of test cases of scheduler_perf: %w", file, err)
	}
	var names []string
	for _, c := range cases {
		for _, w := range c.Workloads {
			name := c.Name + "/" + w.Name
			names = append(names, name)
			if name != which {
				continue
			}
			p := perfParser{c: c, w: w, read: read, templates: map[string]map[string]any{}, out: &Workload{Name: name}}
			if err := p.parse(); err != nil {
				return nil, problem.Invalidf("", "read workload %s of %s: %w", name, file, err)
			}
			return p.out, nil
		}
	}
	if which == "" {
		return nil, problem.Invalidf("the file has "+firstNames(names), "--case is required with --workload")
	}
	return nil, problem.Invalidf("it has "+firstNames(names), "%s has no workload %s", file, which)
}

// maxNames limits the names in a message.
const maxNames = 12

func firstNames(names []string) string {
	if more := len(names) - maxNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), more)
	}
	return strings.Join(names, ", ")
}

// perfParser turns operations into objects.
type perfParser struct {
	c         perfCase
	w         perfWorkload
	read      func(path string) ([]byte, error)
	templates map[string]map[string]any
	out       *Workload
	nodes     int
	pods      int
}

// operations are the supported opcodes with their fields.
func operations() map[string][]string {
	return map[string][]string{
		"createNodes": {"count", "countParam", "nodeTemplatePath", "labelNodePrepareStrategy",
			"uniqueNodeLabelStrategy"},
		"createNamespaces": {"count", "countParam", "prefix", "namespaceTemplatePath"},
		"createPods":       {"count", "countParam", "podTemplatePath", "namespace", "collectMetrics", "skipWaitToCompletion"},
		"barrier":          {"labelSelector", "stageRequirement"},
	}
}

func (p *perfParser) parse() error {
	for i, op := range p.c.WorkloadTemplate {
		opcode, _ := op["opcode"].(string)
		fields, ok := operations()[opcode]
		if !ok {
			return fmt.Errorf("operation %d: %q is not supported: use %s", i+1, opcode,
				strings.Join(slices.Sorted(maps.Keys(operations())), ", "))
		}
		for _, field := range slices.Sorted(maps.Keys(op)) {
			if field != "opcode" && !slices.Contains(fields, field) {
				return fmt.Errorf("operation %d: %s of %s is not supported", i+1, field, opcode)
			}
		}
		if err := p.operation(i, opcode, op); err != nil {
			return fmt.Errorf("operation %d: %s: %w", i+1, opcode, err)
		}
	}
	if len(p.out.Measured) < 2 {
		return fmt.Errorf("%s measured (collectMetrics): expected at least 2",
			plural.Phrase(len(p.out.Measured), "pod is", "pods are"))
	}
	gates := slices.Sorted(maps.Keys(p.w.FeatureGates))
	gates = append(gates, slices.Sorted(maps.Keys(p.c.FeatureGates))...)
	if len(gates) > 0 {
		p.out.Notes = append(p.out.Notes, "feature gates of the workload are not set: "+strings.Join(gates, ", "))
	}
	return nil
}

func (p *perfParser) operation(i int, opcode string, op map[string]any) error {
	if opcode == "barrier" {
		return nil // pods before the measurement are always awaited
	}
	count, err := p.count(op)
	if err != nil {
		return err
	}
	switch opcode {
	case "createNodes":
		return p.createNodes(op, count)
	case "createNamespaces":
		return p.createNamespaces(op, count)
	}
	return p.createPods(i, op, count)
}

// count returns an operation's number, which may be a workload parameter.
func (p *perfParser) count(op map[string]any) (int, error) {
	value := op["count"]
	if param, ok := op["countParam"].(string); ok {
		if value, ok = p.w.Params[strings.TrimPrefix(param, "$")]; !ok {
			return 0, fmt.Errorf("the workload has no parameter %s", param)
		}
	}
	number, ok := value.(float64) // sigs.k8s.io/yaml decodes JSON
	if !ok || number < 0 || number != float64(int(number)) {
		return 0, fmt.Errorf("invalid count %v: must be a number", value)
	}
	return int(number), nil
}

// template returns a copy of a template; without a path, nil.
func (p *perfParser) template(path string) (map[string]any, error) {
	if path == "" {
		return nil, nil
	}
	if p.templates[path] == nil {
		text, err := p.read(path)
		if err != nil {
			return nil, err
		}
		o := map[string]any{}
		if err := yaml.Unmarshal(text, &o); err != nil {
			return nil, fmt.Errorf("read template %s: %w", path, err)
		}
		p.templates[path] = o
	}
	return copyOf(p.templates[path])
}

func copyOf(o map[string]any) (map[string]any, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	copied := map[string]any{}
	return copied, json.Unmarshal(text, &copied)
}

func textOf(op map[string]any, field string) string {
	text, _ := op[field].(string)
	return text
}

// setName gives an object a name that begins as its template says.
func setName(o map[string]any, otherwise string, number int) {
	metadata := metadataOf(o)
	prefix := otherwise
	for _, field := range []string{"name", "generateName"} {
		if text, ok := metadata[field].(string); ok && text != "" {
			prefix = strings.TrimSuffix(text, "-")
		}
	}
	delete(metadata, "generateName")
	metadata["name"] = fmt.Sprintf("%s-%06d", prefix, number)
}

func (p *perfParser) createNodes(op map[string]any, count int) error {
	key, values, err := nodeLabels(op)
	if err != nil {
		return err
	}
	unique, _ := op["uniqueNodeLabelStrategy"].(map[string]any)
	for i := range count {
		node, err := p.template(textOf(op, "nodeTemplatePath"))
		if err != nil {
			return err
		}
		if node == nil {
			node = newNode("")
		}
		setName(node, "node", p.nodes)
		p.nodes++
		if len(values) > 0 {
			setLabel(node, key, values[i%len(values)])
		}
		if label := textOf(unique, "labelKey"); label != "" {
			setLabel(node, label, nameOf(node))
		}
		p.out.Objects = append(p.out.Objects, node)
	}
	return nil
}

// nodeLabels returns the label that nodes get in turn.
func nodeLabels(op map[string]any) (key string, values []string, err error) {
	strategy, ok := op["labelNodePrepareStrategy"].(map[string]any)
	if !ok {
		return "", nil, nil
	}
	all, _ := strategy["labelValues"].([]any)
	for _, value := range all {
		text, ok := value.(string)
		if !ok {
			return "", nil, fmt.Errorf("invalid labelValues %v: must be texts", all)
		}
		values = append(values, text)
	}
	if one := textOf(strategy, "labelValue"); one != "" {
		values = append(values, one)
	}
	return textOf(strategy, "labelKey"), values, nil
}

func (p *perfParser) createNamespaces(op map[string]any, count int) error {
	for i := range count {
		o, err := p.template(textOf(op, "namespaceTemplatePath"))
		if err != nil {
			return err
		}
		if o == nil {
			o = map[string]any{"apiVersion": "v1", "kind": "Namespace"}
		}
		metadata := metadataOf(o)
		delete(metadata, "generateName")
		metadata["name"] = fmt.Sprintf("%s-%d", textOf(op, "prefix"), i)
		p.out.Objects = append(p.out.Objects, o)
	}
	return nil
}

func (p *perfParser) createPods(i int, op map[string]any, count int) error {
	measured, _ := op["collectMetrics"].(bool)
	if !measured && len(p.out.Measured) > 0 {
		return fmt.Errorf("pods after those that are measured are not supported")
	}
	path := textOf(op, "podTemplatePath")
	if path == "" {
		path = p.c.DefaultPodTemplatePath
	}
	namespace := textOf(op, "namespace")
	if namespace == "" {
		namespace = fmt.Sprintf("namespace-%d", i)
	}
	for range count {
		pod, err := p.template(path)
		if err != nil {
			return err
		}
		if pod == nil {
			pod = newPod("100m", "500Mi")
		}
		setName(pod, "pod", p.pods)
		p.pods++
		metadataOf(pod)["namespace"] = namespace
		if measured {
			p.out.Measured = append(p.out.Measured, pod)
		} else {
			p.out.Before = append(p.out.Before, pod)
		}
	}
	return nil
}
