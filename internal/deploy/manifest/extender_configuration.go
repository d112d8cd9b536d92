package manifest

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/profiles"
)

// configuration returns the ConfigMap with pmk-extender's configuration.
func (e Extender) configuration() (*corev1.ConfigMap, error) {
	tls := map[string]any{
		"certFile": extenderTLSDir + "/tls.crt", "keyFile": extenderTLSDir + "/tls.key", "clientCAFile": extenderTLSDir +
			"/ca.crt",
	}
	if e.Anonymous {
		call := e.Call
		call.BindVerb = ""
		tls["anonymousVerbs"] = verbs(call)
	}
	text, err := extenderConfiguration(e.Policies, e.Call, fmt.Sprintf(":%d", ExtenderPort), tls)
	if err != nil {
		return nil, err
	}
	return hashedMap(e.meta(e.Name+"-config"), extenderConfigKey, text), nil
}

// verbs returns the verbs with which a scheduler calls an extender.
func verbs(call profiles.Extender) []string {
	return slices.DeleteFunc([]string{call.FilterVerb, call.PrioritizeVerb, call.PreemptVerb, call.BindVerb},
		func(v string) bool { return v == "" })
}

// extenderConfiguration returns pmk-extender's configuration.
func extenderConfiguration(policies []Policy, call profiles.Extender, listen string,
	tls map[string]any) ([]byte, error) {
	content := map[string]any{
		"apiVersion": "pmk-sched.io/v1alpha1", "kind": "Extender", "policies": policies, "verbs": verbs(call),
		"listen":           listen,
		"nodeCacheCapable": *call.WithDefaults().NodeCacheCapable,
	}
	if tls != nil {
		content["tls"] = tls
	}
	text, err := yaml.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("write the configuration of an extender: %w", err)
	}
	return text, nil
}
