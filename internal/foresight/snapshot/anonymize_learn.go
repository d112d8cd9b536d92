package snapshot

import (
	"bytes"
	"fmt"
	"strconv"
)

// Learn remembers facts in an object, as [Encode] encodes it, about other objects: the claim names
// for a pod's ephemeral volumes, and the labels and taints whose numbers are compared. It is called
// for all objects before [Anonymizer.Object] is called for the first one.
func (a *Anonymizer) Learn(k *Kind, text []byte) error {
	// Few objects have them, and decoding all objects takes long.
	if !bytes.Contains(text, []byte(`"Gt"`)) && !bytes.Contains(text, []byte(`"Lt"`)) &&
		!bytes.Contains(text, []byte(`"ephemeral"`)) {
		return nil
	}
	o, err := Decode(text)
	if err != nil {
		return fmt.Errorf("read a stored %s: %w", k.Name, err)
	}
	if k.Name == "Pod" {
		a.learnClaims(o)
	}
	a.learnCompared(k.fields, o)
	return nil
}

// learnCompared remembers the keys in the requirements and tolerations in a value that compare
// numbers (NodeSelectorOpGt, NodeSelectorOpLt, TolerationOpGt and TolerationOpLt in
// k8s.io/api/core/v1).
func (a *Anonymizer) learnCompared(t *tree, value any) {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			a.learnCompared(t, element)
		}
	case object:
		key, _ := v["key"].(string)
		if operator := v["operator"]; operator == "Gt" || operator == "Lt" {
			switch t.treatment {
			case requirements:
				a.comparedLabels[key] = true
			case taints:
				a.comparedTaints[key] = true
			default:
			}
		}
		for field, child := range t.children {
			a.learnCompared(child, v[field])
		}
	}
}

// comparedText replaces a label's or a taint's value, unless it is a number that is compared.
func (a *Anonymizer) comparedText(compared map[string]bool, key string) func(text string) string {
	return func(text string) string {
		// As component-helpers/scheduling/corev1/nodeaffinity and the API's tolerations parse it.
		if _, err := strconv.ParseInt(text, 10, 64); err == nil && compared[key] {
			return text
		}
		return a.text(text)
	}
}

// learnClaims remembers the claim names for a pod's ephemeral volumes
// (k8s.io/component-helpers/storage/ephemeral, VolumeClaimName).
func (a *Anonymizer) learnClaims(pod object) {
	metadata, _ := pod["metadata"].(object)
	spec, _ := pod["spec"].(object)
	volumes, _ := spec["volumes"].([]any)
	podName, _ := metadata["name"].(string)
	for _, v := range volumes {
		volume, _ := v.(object)
		volumeName, _ := volume["name"].(string)
		if volume["ephemeral"] != nil {
			a.claims[podName+"-"+volumeName] = a.text(podName) + "-" + a.text(volumeName)
		}
	}
}
