package snapshot

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Anonymizer replaces the names in objects, and everything else that identifies the cluster and is
// not needed to schedule: labels and taints, images, UIDs, addresses and volume identifiers.
//
// The same text is replaced by the same text everywhere, so that references, selectors and labels
// with a node's name still match. The replacement depends on a key: two snapshots that are
// anonymized with the same key can be compared, and no one without the key can check a guess of a
// name.
//
// An Anonymizer keeps the values to which schedulers and their configuration refer: resource,
// driver, device class and scheduler names, Kubernetes labels and taints (their keys, and values
// that are not names), device attributes, and numbers in fields. It keeps a number in a label or a
// taint only if a requirement or a toleration compares it: it may be an account's number.
type Anonymizer struct {
	key []byte
	// claims maps the claim names for ephemeral volumes, POD-VOLUME, to their replacements.
	claims map[string]string
	// comparedLabels and comparedTaints are the label and taint keys whose numbers are compared.
	comparedLabels, comparedTaints map[string]bool
}

// NewAnonymizer returns an anonymizer with a key.
func NewAnonymizer(key []byte) *Anonymizer {
	return &Anonymizer{key: slices.Clone(key), claims: map[string]string{}, comparedLabels: map[string]bool{},
		comparedTaints: map[string]bool{}}
}

// Object returns a copy of an object that [Kind.Strip] returned, without its names.
// [Anonymizer.Learn] has seen all objects before.
func (a *Anonymizer) Object(k *Kind, o map[string]any) (map[string]any, error) {
	if k.Custom {
		return nil, fmt.Errorf("anonymize %s: it is not known which of their fields are names", k.GroupResource())
	}
	replaced, _ := a.value(k.fields, o).(object)
	given, _ := o["metadata"].(object)
	annotations, _ := given["annotations"].(object)
	kept := object{}
	for annotation, t := range k.annotations {
		if text, ok := annotations[annotation].(string); ok {
			kept[annotation] = a.replace(t, text)
		}
	}
	for _, annotation := range k.numbers {
		if text, ok := annotations[annotation].(string); ok && isNumbers(text) {
			kept[annotation] = text
		}
	}
	if metadata, ok := replaced["metadata"].(object); ok && len(kept) > 0 {
		metadata["annotations"] = kept
	}
	return replaced, nil
}

// value replaces a value by its field tree. It drops fields that are not in the tree.
func (a *Anonymizer) value(t *tree, value any) any {
	if t.children == nil {
		return a.replace(t.treatment, value)
	}
	switch v := value.(type) {
	case object:
		if t.treatment == owners {
			return a.owner(t, v)
		}
		kept := make(object, len(v))
		for field, inner := range v {
			if child := t.children[field]; child != nil {
				kept[field] = a.value(child, inner)
			}
		}
		return kept
	case []any:
		kept := make([]any, 0, len(v))
		for _, element := range v {
			kept = append(kept, a.value(t, element))
		}
		return kept
	}
	return nil
}

// owner replaces a reference to an owner. An owner's kind that does not belong to Kubernetes
// identifies the cluster.
func (a *Anonymizer) owner(t *tree, reference object) object {
	kept := object{}
	for field, inner := range reference {
		if child := t.children[field]; child != nil {
			kept[field] = a.value(child, inner)
		}
	}
	group, _ := reference["apiGroup"].(string)
	if apiVersion, ok := reference["apiVersion"].(string); ok {
		group, _ = splitAPIVersion(apiVersion)
		if !isPublicGroup(group) {
			kept["apiVersion"] = a.text(group) + "/v1"
		}
	}
	if !isPublicGroup(group) {
		if _, has := reference["apiGroup"]; has {
			kept["apiGroup"] = a.text(group)
		}
		kept["kind"] = a.replace(name, reference["kind"])
	}
	return kept
}

// replace replaces a value at a leaf in the tree.
func (a *Anonymizer) replace(t treatment, value any) any {
	switch t {
	case plain:
		return value
	case name:
		return eachText(value, a.text)
	case key:
		return eachText(value, a.labelKey)
	case image:
		return eachText(value, a.image)
	case uid:
		return eachText(value, a.uid)
	case requestName:
		return eachText(value, a.request)
	case labels, nameKeys, selector, requirements, fieldRequirements, taints, avoidPods:
		return a.structure(t, value)
	case owners, whole:
	}
	return nil
}

// eachText replaces a text, or each text in a list.
func eachText(value any, replace func(string) string) any {
	switch v := value.(type) {
	case string:
		return replace(v)
	case []any:
		all := make([]any, 0, len(v))
		for _, element := range v {
			all = append(all, eachText(element, replace))
		}
		return all
	}
	return nil
}

// sum returns the keyed hash of a text for a purpose.
func (a *Anonymizer) sum(purpose, text string) []byte {
	mac := hmac.New(sha256.New, a.key)
	mac.Write([]byte(purpose + "\x00" + text))
	return mac.Sum(nil)
}

// replacementBytes makes a replacement 12 characters long: 60 bits, so that a million names have no
// two equal replacements.
const replacementBytes = 12

// text replaces a name or a value. The result is valid wherever a name is: it begins with a letter
// and is short.
func (a *Anonymizer) text(text string) string {
	if isPublicText(text) {
		return text
	}
	if claim, ok := a.claims[text]; ok {
		return claim
	}
	encoded := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(a.sum("name", text))
	return "x" + strings.ToLower(encoded[:replacementBytes])
}

// labelKey replaces a label's or a taint's key, unless it belongs to Kubernetes.
func (a *Anonymizer) labelKey(text string) string {
	if domain, _, ok := strings.Cut(text, "/"); ok && isPublicDomain(domain) {
		return text
	}
	return a.text(text)
}

// image replaces an image's name. ImageLocality adds :latest to a name without a tag before it
// compares it with the nodes' image names (pkg/scheduler/framework/plugins/imagelocality,
// normalizedImageName).
func (a *Anonymizer) image(text string) string {
	if text == "" {
		return ""
	}
	if strings.LastIndex(text, ":") <= strings.LastIndex(text, "/") {
		text += ":latest"
	}
	return a.text(text) + ":latest"
}

func (a *Anonymizer) uid(text string) string {
	if text == "" {
		return ""
	}
	h := hex.EncodeToString(a.sum("uid", text))
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:32]}, "-")
}

func (a *Anonymizer) request(text string) string {
	parts := strings.Split(text, "/")
	for i := range parts {
		parts[i] = a.text(parts[i])
	}
	return strings.Join(parts, "/")
}
