// Package staticpod changes the scheduler container in a static pod's manifest, and restores the
// original manifest.
//
// [Parse] reads a manifest, and [Manifest.Apply] edits it as text: every byte outside the [Change]
// stays, comments included. The result is decoded strictly and compared with the old pod. [Swapper]
// replaces the file in one rename, in a way that the kubelet handles. [Backup] keeps the previous
// state with a journal that is written before every step, so that a run that was killed at any
// point can be resumed or reverted. [Watch] waits until the kubelet runs the manifest.
//
// All paths are paths on the node. [Files] maps them to paths in this process.
package staticpod

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/versions"
)

// MaxSize is a manifest's maximum size, as for a kubelet (pkg/kubelet/config/common.go,
// maxConfigLength).
const MaxSize = 10 << 20

// Manifest is a static pod's manifest.
type Manifest struct {
	// Path is the file's path, for messages.
	Path string
	// Raw is the file's content.
	Raw []byte
	// Pod is the decoded pod.
	Pod *corev1.Pod

	text *text
	root *yaml.Node
}

// Parse reads a manifest. It refuses a file that is not a pod, has unknown fields, or cannot be
// edited as text because of anchors, a second document with content or mixed line endings.
func Parse(path string, raw []byte) (*Manifest, error) {
	m := &Manifest{Path: path, Raw: raw}
	var err error
	if m.Pod, err = decode(raw); err != nil {
		return nil, m.refuse(err)
	}
	if m.text, err = newText(raw); err != nil {
		return nil, m.refuse(err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	var doc yaml.Node
	if err := decoder.Decode(&doc); err != nil {
		return nil, m.refuse(err)
	}
	if err := errors.Join(onlyEmpty(decoder), editable(&doc)); err != nil {
		return nil, m.refuse(err)
	}
	m.root = doc.Content[0]
	return m, nil
}

// onlyEmpty refuses further documents with content, which a kubelet ignores.
func onlyEmpty(decoder *yaml.Decoder) error {
	for {
		var next yaml.Node
		err := decoder.Decode(&next)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case len(next.Content) > 0 && next.Content[0].Tag != "!!null":
			return errors.New("it has a second document, which the kubelet ignores")
		}
	}
}

func (m *Manifest) refuse(err error) error {
	return problem.Invalidf("nothing was changed; fix the file first", "read static pod %s: %w", m.Path, err)
}

// decode decodes a pod strictly: unknown fields and duplicate keys are errors.
func decode(raw []byte) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if err := sigsyaml.UnmarshalStrict(raw, pod); err != nil {
		return nil, err
	}
	switch {
	case pod.APIVersion != "v1" || pod.Kind != "Pod":
		return nil, fmt.Errorf("expected a Pod of v1, got %s %q", pod.APIVersion, pod.Kind)
	case pod.Name == "" || len(pod.Spec.Containers) == 0:
		return nil, errors.New("the pod has no name or no containers")
	}
	return pod, nil
}

// editable refuses anchors, aliases and tags: an edit in one place could change another.
func editable(n *yaml.Node) error {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return fmt.Errorf("line %d: an anchor cannot be edited safely", n.Line)
	case n.Style&yaml.TaggedStyle != 0:
		return fmt.Errorf("line %d: a tag cannot be edited safely", n.Line)
	}
	for _, child := range n.Content {
		if err := editable(child); err != nil {
			return err
		}
	}
	return nil
}

// Container returns the container with the name.
func (m *Manifest) Container(name string) (*corev1.Container, error) {
	for i := range m.Pod.Spec.Containers {
		if m.Pod.Spec.Containers[i].Name == name {
			return &m.Pod.Spec.Containers[i], nil
		}
	}
	return nil, problem.Invalidf("", "read static pod %s: no container %s", m.Path, name)
}

// Flag returns a flag's value, as the program reads it: the last occurrence wins, and a boolean
// flag is "true" or "false".
func Flag(words []string, name string) (value string, given bool) {
	f, given := versions.FindFlag(words, name)
	switch {
	case !given:
		return "", false
	case !f.HasValue:
		return "true", true
	case versions.IsBooleanFlag(name):
		if enabled, err := strconv.ParseBool(f.Value); err == nil {
			return strconv.FormatBool(enabled), true
		}
	}
	return f.Value, true
}

// child returns the value for a key in a mapping, or nil.
func child(mapping *yaml.Node, name string) *yaml.Node {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// named returns the item with the name in a sequence of mappings, or nil.
func named(sequence *yaml.Node, name string) *yaml.Node {
	if sequence == nil {
		return nil
	}
	for _, item := range sequence.Content {
		if n := child(item, "name"); n != nil && n.Value == name {
			return item
		}
	}
	return nil
}
