package staticpod

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
)

// editor applies one Change to a manifest's text.
type editor struct {
	*Manifest
	change  Change
	splices []splice
}

func (e *editor) metadata() error {
	metadata := child(e.root, "metadata")
	if uid := string(e.change.UID); uid != "" {
		edit := func() error { return e.insert(metadata, false, field{"uid", quotedString(uid)}) }
		if old := child(metadata, "uid"); old != nil {
			edit = func() error { return e.set(old, uid, flowStyle(metadata)) }
		}
		if err := edit(); err != nil {
			return err
		}
	}
	var missing []field
	annotations := child(metadata, "annotations")
	for _, a := range e.change.Annotations {
		if old := child(annotations, a.Name); old != nil {
			if err := e.set(old, a.Value, flowStyle(annotations)); err != nil {
				return err
			}
			continue
		}
		missing = append(missing, field{a.Name, quotedString(a.Value)})
	}
	switch {
	case len(missing) == 0:
		return nil
	case annotations == nil:
		return e.insert(metadata, flowStyle(metadata), field{"annotations", missing})
	default:
		return e.insert(annotations, flowStyle(annotations), missing...)
	}
}

func (e *editor) image() error {
	container := e.container()
	inFlow := flowStyle(container)
	if e.change.Image != "" {
		if err := e.setOrInsert(container, inFlow, "image", e.change.Image); err != nil {
			return err
		}
	}
	if e.change.PullIfNotPresent {
		return e.setOrInsert(container, inFlow, "imagePullPolicy", string(corev1.PullIfNotPresent))
	}
	return nil
}

// command sets the flag.
func (e *editor) command() error {
	container, err := e.Container(e.change.Container)
	if err != nil || !e.change.setsFlag() {
		return err
	}
	_, at, err := e.change.flagPlace(container)
	if err != nil {
		return err
	}
	key := "args"
	if at.command {
		key = "command"
	}
	list, word := child(e.container(), key), e.change.flag()+"="+e.change.Config
	if at.there {
		return e.set(list.Content[at.index], word, flowStyle(list))
	}
	return e.insertWord(list, at.index, word)
}

// insertWord inserts a word into a list that is not empty, before the item at index.
func (e *editor) insertWord(list *yaml.Node, index int, word string) error {
	inFlow := flowStyle(list)
	neighbour := list.Content[min(index, len(list.Content)-1)]
	written := like(neighbour.Style, inFlow, word)
	if index < len(list.Content) {
		at, err := e.text.offset(neighbour)
		if err != nil {
			return err
		}
		after := ", "
		if !inFlow {
			// The existing dash stays before the new word; the neighbour gets another.
			after = e.text.eol + strings.Repeat(" ", list.Column-1) + "-" + strings.Repeat(" ", neighbour.Column-list.Column-1)
		}
		e.splices = append(e.splices, splice{at, at, written + after})
		return nil
	}
	_, end, err := e.text.span(neighbour)
	if err != nil {
		return err
	}
	before := ", "
	if !inFlow {
		before = e.text.eol + strings.Repeat(" ", list.Column-1) + "- "
		if rest, _, _ := strings.Cut(string(e.text.raw[end:]), "\n"); strings.TrimRight(rest, "\r") != "" {
			return fmt.Errorf("line %d: a comment follows the only word of the command", neighbour.Line)
		}
	}
	e.splices = append(e.splices, splice{end, end, before + written})
	return nil
}

func (e *editor) mount() error {
	m := e.change.Mount
	if m == nil {
		return nil
	}
	spec, container := child(e.root, "spec"), e.container()
	volume := []field{
		{"hostPath", []field{{"path", m.HostPath}, {"type", string(m.Type)}}},
		{"name", m.Name},
	}
	if err := e.item(spec, "volumes", m.Name, volume, map[string]string{"path": m.HostPath, "type": string(m.Type)},
		"hostPath"); err != nil {
		return err
	}
	mount := []field{{"mountPath", m.Path}, {"name", m.Name}, {"readOnly", true}}
	return e.item(container, "volumeMounts", m.Name, mount, map[string]string{"mountPath": m.Path}, "")
}

// item adds an item to a list of named items, or sets the given values in the existing one. The
// values are under the key inside unless that is empty.
func (e *editor) item(parent *yaml.Node, key, name string, fields []field, values map[string]string,
	inside string) error {
	list := child(parent, key)
	if list == nil {
		return e.insert(parent, flowStyle(parent), field{key, [][]field{fields}})
	}
	there := named(list, name)
	if there == nil {
		return e.insertItem(list, fields)
	}
	if inside != "" {
		there = child(there, inside)
	}
	for value, text := range values {
		node := child(there, value)
		if node == nil {
			return fmt.Errorf("line %d: %s %s was edited", list.Line, key, name)
		}
		if err := e.set(node, text, flowStyle(there) || flowStyle(list)); err != nil {
			return err
		}
	}
	return nil
}

// insertItem inserts an item at the beginning of a list.
func (e *editor) insertItem(list *yaml.Node, fields []field) error {
	at, err := e.text.offset(list)
	if err != nil {
		return err
	}
	switch {
	case list.Kind != yaml.SequenceNode:
		return fmt.Errorf("line %d: expected a list", list.Line)
	case flowStyle(list):
		after := ", "
		if len(list.Content) == 0 {
			after = ""
		}
		e.splices = append(e.splices, splice{at + 1, at + 1, flow(fields) + after})
	default:
		margin := list.Column - 1
		e.splices = append(e.splices,
			splice{at, at, "- " + block(fields, margin+2, e.text.eol) + e.text.eol + strings.Repeat(" ", margin)})
	}
	return nil
}

func (e *editor) user() error {
	container, err := e.Container(e.change.Container)
	if err != nil || !e.change.RunAsRoot || setsUser(e.Pod, container) {
		return err
	}
	node := e.container()
	if context := child(node, "securityContext"); context != nil {
		return e.insert(context, flowStyle(context), field{"runAsUser", 0})
	}
	return e.insert(node, flowStyle(node), field{"securityContext", []field{{"runAsUser", 0}}})
}

// insert inserts entries at the beginning of a mapping.
func (e *editor) insert(mapping *yaml.Node, inFlow bool, fields ...field) error {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return fmt.Errorf("no mapping to insert %s into", fields[0].name)
	}
	at, err := e.text.offset(mapping)
	if err != nil {
		return err
	}
	if inFlow || flowStyle(mapping) {
		written := strings.TrimSuffix(strings.TrimPrefix(flow(fields), "{"), "}")
		if len(mapping.Content) > 0 {
			written += ", "
		}
		e.splices = append(e.splices, splice{at + 1, at + 1, written})
		return nil
	}
	margin := mapping.Column - 1
	e.splices = append(e.splices,
		splice{at, at, block(fields, margin, e.text.eol) + e.text.eol + strings.Repeat(" ", margin)})
	return nil
}

// set replaces a scalar's value.
func (e *editor) set(n *yaml.Node, value string, inFlow bool) error {
	if n.Kind == yaml.ScalarNode && n.Value == value {
		return nil
	}
	if n.Kind != yaml.ScalarNode {
		return fmt.Errorf("line %d: expected a single value", n.Line)
	}
	at, end, err := e.text.span(n)
	if err != nil {
		return err
	}
	e.splices = append(e.splices, splice{at, end, like(n.Style, inFlow, value)})
	return nil
}

func (e *editor) setOrInsert(mapping *yaml.Node, inFlow bool, name, value string) error {
	if old := child(mapping, name); old != nil {
		return e.set(old, value, inFlow)
	}
	return e.insert(mapping, inFlow, field{name, value})
}

func flowStyle(n *yaml.Node) bool { return n != nil && n.Style&yaml.FlowStyle != 0 }
