package profiles

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	configGroup = "kubescheduler.config.k8s.io"
	configKind  = "KubeSchedulerConfiguration"

	// maxSource is what fits into a ConfigMap beside its metadata, in bytes.
	maxSource = 1 << 20
	// maxNodes stops a few aliases from growing into millions of nodes.
	maxNodes = 100_000
)

// document is a configuration as YAML nodes, with what was mended to read it.
type document struct {
	name string
	// text is the document as it was written, without a ConfigMap around it.
	text []byte
	api  api
	root *yaml.Node
	// preset says that nobody wrote the document: what the release's own defaults
	// are is then right.
	preset bool
	// policy says that it is a legacy Policy, which c.policy makes a configuration.
	policy bool
	// flow says that the source was JSON.
	flow  bool
	notes []Note
}

// parse reads a configuration strictly: one document, one mapping, a known kind
// and config API, no field that this API lacks, none twice, every value of its
// kind. What is only laid out wrongly and can be meant in one way is mended,
// with a note.
func parse(name string, source []byte) (*document, error) {
	doc, err := read(name, source, true)
	if err != nil {
		return nil, err
	}
	var wrong problems
	doc.check(&wrong, doc.api)
	if err := wrong.err(name); err != nil {
		return nil, err
	}
	return doc, nil
}

// check finds what a strict decoder of the config API would refuse.
func (d *document) check(p *problems, a api) {
	if d.policy {
		check(p, d.root, policyObject(), a, "")
		return
	}
	check(p, d.root, configuration(), a, "")
}

// read finds the document in a source, and what it is; its fields are not
// looked at yet. With mending, what can be meant in one way only is put right.
func read(name string, source []byte, mending bool) (*document, error) {
	fail := func(p ...Problem) error { return problems(p).err(name) }
	if len(source) > maxSource {
		return nil, fail(Problem{Message: fmt.Sprintf("%d bytes are more than a ConfigMap can hold (1 MiB)", len(source))})
	}
	doc := &document{name: name, text: source}
	if problem := doc.load(source, mending); problem != nil {
		return nil, fail(*problem)
	}
	if text(get(doc.root, "kind")) == "ConfigMap" {
		if problem := doc.unwrap(mending); problem != nil {
			return nil, fail(*problem)
		}
	}
	if problem := doc.identify(); problem != nil {
		return nil, fail(*problem)
	}
	doc.flow = bytes.HasPrefix(bytes.TrimSpace(doc.text), []byte("{"))
	if mending && !doc.policy {
		doc.notes = append(doc.notes, mend(doc.root)...)
	}
	return doc, nil
}

// load reads the nodes of a source.
func (d *document) load(source []byte, mending bool) *Problem {
	root, problem := decode(source)
	if problem != nil {
		joined, notes := joinWrapped(source)
		again, stillWrong := decode(joined)
		if !mending || len(notes) == 0 || stillWrong != nil {
			return problem
		}
		root, d.notes = again, append(d.notes, notes...)
	}
	d.root = root
	return expandAliases(root)
}

// decode returns the root mapping of the only document in the source.
func decode(source []byte) (*yaml.Node, *Problem) {
	decoder := yaml.NewDecoder(bytes.NewReader(source))
	var root *yaml.Node
	for {
		var doc yaml.Node
		err := decoder.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, syntaxProblem(source, err)
		}
		if len(doc.Content) == 0 || isNull(doc.Content[0]) {
			continue
		}
		if root != nil {
			return nil, &Problem{
				Line: doc.Content[0].Line, Column: doc.Content[0].Column,
				Message: "a second document begins here; a scheduler reads one configuration",
				Try:     "keep one document in the file, or deploy each under a --name of its own",
			}
		}
		root = doc.Content[0]
	}
	switch {
	case root == nil:
		return nil, &Problem{Line: 1, Column: 1, Message: "the file is empty: no KubeSchedulerConfiguration in it", Try: "begin with `pmk-sched profile show default`, or leave --config out"}
	case !isMapping(root):
		return nil, &Problem{Line: root.Line, Column: root.Column, Message: fmt.Sprintf("a KubeSchedulerConfiguration is a mapping, this is %s", describe(root)), Try: "begin with apiVersion: and kind:"}
	}
	return root, nil
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

// syntaxProblem puts a column to the line that the YAML reader complains about,
// and says it where a tab is the cause.
func syntaxProblem(source []byte, err error) *Problem {
	p := &Problem{Line: 1, Column: 1, Message: "not YAML: " + err.Error(), Try: "check the indentation: spaces only, two for each level"}
	if found := yamlLine.FindStringSubmatch(err.Error()); found != nil {
		p.Message = "not YAML: " + found[2]
		if line, err := strconv.Atoi(found[1]); err == nil {
			p.Line = line
		}
	}
	lines := strings.Split(string(source), "\n")
	for i, line := range lines {
		indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if tab := strings.IndexByte(indent, '\t'); tab >= 0 && strings.TrimSpace(line) != "" {
			return &Problem{Line: i + 1, Column: tab + 1, Message: "a tab indents this line; YAML allows spaces only", Try: "replace each tab by two spaces"}
		}
	}
	if p.Line <= len(lines) {
		line := lines[p.Line-1]
		p.Column = 1 + len(line) - len(strings.TrimLeft(line, " "))
	}
	return p
}

// expandAliases puts a copy of its anchor in the place of each alias, so that
// what is edited in one place does not change in another.
func expandAliases(root *yaml.Node) *Problem {
	count := 0
	var walk func(n *yaml.Node, depth int) *Problem
	walk = func(n *yaml.Node, depth int) *Problem {
		if count++; count > maxNodes || depth > 100 {
			return &Problem{Line: n.Line, Column: n.Column, Message: "nested or repeated too often"}
		}
		n.Anchor = ""
		if isNull(n) {
			n.Value = "null" // an empty one would be written as an empty string
		}
		for i, c := range n.Content {
			if c.Kind == yaml.AliasNode {
				copied := *c.Alias
				copied.Content = append([]*yaml.Node(nil), c.Alias.Content...)
				c, n.Content[i] = &copied, &copied
			} else if c.Tag == "!!merge" {
				return &Problem{Line: c.Line, Column: c.Column, Message: "merge keys (<<) are not read here", Try: "write the merged fields out"}
			} else if c.Kind != yaml.ScalarNode {
				own := *c
				own.Content = append([]*yaml.Node(nil), c.Content...)
				c, n.Content[i] = &own, &own
			} else {
				own := *c
				c, n.Content[i] = &own, &own
			}
			if p := walk(c, depth+1); p != nil {
				return p
			}
		}
		return nil
	}
	return walk(root, 0)
}

// identify finds the config API that the document says it is written in.
func (d *document) identify() *Problem {
	versionKey, version := lookup(d.root, "apiVersion")
	kindKey, kind := lookup(d.root, "kind")
	switch {
	case versionKey == nil || kindKey == nil:
		missing := "kind"
		if versionKey == nil {
			missing = "apiVersion"
		}
		return &Problem{Line: d.root.Line, Column: d.root.Column, Message: missing + " is missing", Try: "begin the file with `apiVersion: " + configGroup + "/v1` and `kind: " + configKind + "`"}
	case text(kind) == policyKind && isPolicyVersion(text(version)):
		d.policy, d.api = true, policyAPI()
		d.lenientExtenders()
		return nil
	case text(kind) != configKind:
		return &Problem{Line: kind.Line, Column: kind.Column, Message: fmt.Sprintf("kind is %q, not %s", kind.Value, configKind), Try: "give the scheduler's configuration; other objects are made by pmk-sched itself"}
	}
	group, name, _ := strings.Cut(text(version), "/")
	if group != configGroup {
		return &Problem{Line: version.Line, Column: version.Column, Message: fmt.Sprintf("apiVersion %q is not of the group %s", version.Value, configGroup), Try: "use one of " + strings.Join(apiVersions(), ", ")}
	}
	found, ok := apiNamed(name)
	if !ok {
		return &Problem{Line: version.Line, Column: version.Column, Message: fmt.Sprintf("config API %q is not known", version.Value), Try: "use one of " + strings.Join(apiVersions(), ", ")}
	}
	d.api = found
	return nil
}

// profiles returns the profiles of the document, and makes the one that a
// configuration without any stands for.
func (d *document) profiles() []*yaml.Node {
	all := list(d.root, "profiles")
	if len(all.Content) == 0 {
		all.Content = append(all.Content, mapping())
	}
	return all.Content
}

// encode writes a document as YAML.
func encode(root *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return nil, err
	}
	if err := encoder.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
