package snapshot

import (
	"encoding/json"
	"strings"
)

// structure replaces a value whose structure the API defines.
func (a *Anonymizer) structure(t treatment, value any) any {
	switch t {
	case labels:
		return a.labels(value)
	case nameKeys:
		return eachKey(value, a.text, func(_ string, v any) any { return v })
	case selector:
		return a.selector(value)
	case requirements:
		return a.requirements(value, a.labelKey)
	case fieldRequirements:
		return a.requirements(value, func(field string) string { return field })
	case taints:
		return a.taints(value)
	case avoidPods:
		return a.avoidPods(value)
	}
	return nil
}

func eachKey(value any, keyOf func(string) string, valueOf func(key string, v any) any) any {
	v, ok := value.(object)
	if !ok {
		return nil
	}
	all := make(object, len(v))
	for k, inner := range v {
		all[keyOf(k)] = valueOf(k, inner)
	}
	return all
}

func (a *Anonymizer) labels(value any) any {
	return eachKey(value, a.labelKey, func(key string, v any) any {
		return eachText(v, a.comparedText(a.comparedLabels, key))
	})
}

// selector replaces a v1.LabelSelector.
func (a *Anonymizer) selector(value any) any {
	v, ok := value.(object)
	if !ok {
		return nil
	}
	replaced := object{}
	if matching, ok := v["matchLabels"]; ok {
		replaced["matchLabels"] = a.labels(matching)
	}
	if expressions, ok := v["matchExpressions"]; ok {
		replaced["matchExpressions"] = a.requirements(expressions, a.labelKey)
	}
	return replaced
}

// requirements replaces a list with key, operator and values.
func (a *Anonymizer) requirements(value any, keyOf func(string) string) any {
	list, ok := value.([]any)
	if !ok {
		return nil
	}
	all := make([]any, 0, len(list))
	for _, element := range list {
		given, _ := element.(object)
		replaced := object{}
		key, ok := given["key"].(string)
		if ok {
			replaced["key"] = keyOf(key)
		}
		if operator, ok := given["operator"].(string); ok {
			replaced["operator"] = operator
		}
		if values, ok := given["values"]; ok {
			replaced["values"] = eachText(values, a.comparedText(a.comparedLabels, key))
		}
		all = append(all, replaced)
	}
	return all
}

// taints replaces a taint or a toleration, or a list of them.
func (a *Anonymizer) taints(value any) any {
	switch v := value.(type) {
	case []any:
		all := make([]any, 0, len(v))
		for _, element := range v {
			all = append(all, a.taints(element))
		}
		return all
	case object:
		replaced := object{}
		key, _ := v["key"].(string)
		for field, inner := range v {
			switch field {
			case "key":
				replaced[field] = eachText(inner, a.labelKey)
			case "value":
				replaced[field] = eachText(inner, a.comparedText(a.comparedTaints, key))
			case "operator", "effect", "tolerationSeconds", "timeAdded":
				replaced[field] = inner
			}
		}
		return replaced
	}
	return nil
}

// avoidPods replaces controller names in a v1.AvoidPods, which a node annotation has as JSON.
func (a *Anonymizer) avoidPods(value any) any {
	text, _ := value.(string)
	var given, replaced struct {
		PreferAvoidPods []struct {
			PodSignature struct {
				PodController struct {
					Kind       string `json:"kind"`
					Name       string `json:"name"`
					UID        string `json:"uid"`
					Controller bool   `json:"controller"`
				} `json:"podController"`
			} `json:"podSignature"`
		} `json:"preferAvoidPods"`
	}
	if err := json.Unmarshal([]byte(text), &given); err != nil {
		return "" // the plugin ignores it too
	}
	replaced = given
	for i := range replaced.PreferAvoidPods {
		controller := &replaced.PreferAvoidPods[i].PodSignature.PodController
		controller.Name, controller.UID = a.text(controller.Name), a.uid(controller.UID)
	}
	result, err := json.Marshal(replaced)
	if err != nil {
		return ""
	}
	return string(result)
}

// isPublicGroup reports whether an API group belongs to Kubernetes. Groups without a domain do.
func isPublicGroup(group string) bool { return !strings.Contains(group, ".") || isPublicDomain(group) }

// isPublicDomain reports whether a key's prefix belongs to Kubernetes.
func isPublicDomain(domain string) bool {
	for _, public := range []string{"kubernetes.io", "k8s.io"} {
		if domain == public || strings.HasSuffix(domain, "."+public) {
			return true
		}
	}
	return false
}

// isPublicText reports whether a name or a value identifies no one: Kubernetes itself uses it.
func isPublicText(text string) bool {
	switch text {
	case "", "true", "false", "default", "kube-system", "kube-public", "kube-node-lease",
		"system-cluster-critical", "system-node-critical",
		"linux", "windows", "amd64", "arm64", "arm", "386", "ppc64le", "riscv64", "s390x":
		return true
	}
	return false
}
