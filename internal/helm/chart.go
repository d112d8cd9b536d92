// Package helm writes the objects of one scheduler as a Helm chart: what deploy
// applies, with the values that people change from one installation to the next.
// It does no I/O and does not run Helm.
//
// Where the scheduler's name goes is found by rendering the objects under a
// placeholder: whatever carries the placeholder carries the name. The names of
// ConfigMaps end in a hash of their content; the chart computes it as package
// manifest does, so that the default values give the very same objects.
package helm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Placeholder is the scheduler name that the objects of a chart are rendered
// under. Nothing else is called so.
const Placeholder = "pmk-sched-chart-name"

// Input is what a chart is made of.
type Input struct {
	// Name is the scheduler's, and the default of the value.
	Name string
	// Release is the Kubernetes release of the scheduler, Version that of the
	// program that writes the chart.
	Release, Version string
	// Objects are those that deploy applies; Templates the same, in the same
	// order, for a scheduler that is called Placeholder and has more than one
	// replica.
	Objects, Templates []*unstructured.Unstructured
	// NodeSelector is that of the scheduler: an empty value is a key that has
	// to exist.
	NodeSelector map[string]string
}

// tokens stand in the objects for what becomes an expression of the chart.
const (
	tokenImage         = "PMK-SCHED-IMAGE"
	tokenReplicas      = "PMK-SCHED-REPLICAS"
	tokenResources     = "PMK-SCHED-RESOURCES"
	tokenTolerations   = "PMK-SCHED-TOLERATIONS"
	tokenAffinity      = "PMK-SCHED-AFFINITY"
	tokenConfigMap     = "PMK-SCHED-CONFIG-MAP"
	tokenConfiguration = "PMK-SCHED-CONFIGURATION"
	tokenKubeconfigMap = "PMK-SCHED-KUBECONFIG-MAP"
	tokenKubeconfig    = "PMK-SCHED-KUBECONFIG"
)

// expressions take the place of tokens.
var expressions = strings.NewReplacer(
	tokenConfigMap, `{{ include "scheduler.configMap" . }}`,
	tokenConfiguration, `{{ include "scheduler.configuration" . | toJson }}`,
	tokenKubeconfigMap, `{{ include "scheduler.kubeconfigMap" . }}`,
	tokenKubeconfig, `{{ include "scheduler.kubeconfig" . | toJson }}`,
	tokenImage, `{{ .Values.image | toJson }}`,
	tokenReplicas, `{{ .Values.replicas }}`,
	tokenResources, `{{ toJson .Values.resources }}`,
	tokenTolerations, `{{ toJson .Values.tolerations }}`,
	tokenAffinity, `{{ include "scheduler.affinity" . }}`,
	Placeholder, `{{ .Values.name }}`,
)

// escape keeps braces of a person's text from being taken for expressions.
func escape(text string) string { return strings.ReplaceAll(text, "{{", `{{ "{{" }}`) }

// chart collects the files.
type chart struct {
	in     Input
	files  map[string][]byte
	values values
	// configuration and kubeconfig are the texts in the two ConfigMaps; suffix
	// ends the name of the second where its text is not all there.
	configuration, kubeconfig, kubeconfigSuffix string
	apart                                       any
}

// values are the values that can be chosen, in the order of values.yaml.
type values struct {
	Name         string            `json:"name"`
	Image        string            `json:"image"`
	Replicas     int64             `json:"replicas"`
	Resources    any               `json:"resources"`
	NodeSelector map[string]string `json:"nodeSelector"`
	Tolerations  any               `json:"tolerations"`
	Plugins      string            `json:"plugins"`
	PluginConfig string            `json:"pluginConfig"`
}

// Chart returns the files of the chart by their paths.
func Chart(in Input) (map[string][]byte, error) {
	if len(in.Objects) != len(in.Templates) {
		return nil, errors.New("write a chart: the objects and their templates are not the same")
	}
	c := &chart{in: in, files: map[string][]byte{}, values: values{Name: in.Name, NodeSelector: in.NodeSelector}}
	for i, template := range in.Templates {
		if err := c.object(i, in.Objects[i], template.DeepCopy()); err != nil {
			return nil, fmt.Errorf("write %s %s as a template: %w", template.GetKind(), in.Objects[i].GetName(), err)
		}
	}
	if err := c.library(); err != nil {
		return nil, err
	}
	return c.files, c.metadata()
}

// object adds the template of one object.
func (c *chart) object(i int, real, template *unstructured.Unstructured) error {
	var err error
	switch template.GetKind() {
	case "Deployment":
		err = c.deployment(real, template)
	case "ConfigMap":
		err = c.configMap(real, template)
	}
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(template.Object)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("templates/%02d-%s.yaml", i+1, strings.ToLower(template.GetKind()))
	c.files[name] = []byte(expressions.Replace(escape(string(text))))
	return nil
}

// deployment takes the values from the Deployment.
func (c *chart) deployment(real, template *unstructured.Unstructured) error {
	var found bool
	var err error
	if c.values.Replicas, found, err = unstructured.NestedInt64(real.Object, "spec", "replicas"); err != nil || !found {
		return errors.Join(errors.New("it has no replicas"), err)
	}
	pod, found, err := unstructured.NestedMap(real.Object, "spec", "template", "spec")
	if err != nil || !found {
		return errors.Join(errors.New("it has no pod template"), err)
	}
	containers, ok := pod["containers"].([]any)
	if !ok || len(containers) != 1 {
		return errors.New("it has not one container")
	}
	container, _ := containers[0].(map[string]any)
	c.values.Image, _ = container["image"].(string)
	c.values.Resources, c.values.Tolerations = container["resources"], pod["tolerations"]
	if c.apart, _, err = unstructured.NestedFieldCopy(template.Object, "spec", "template", "spec", "affinity", "podAntiAffinity"); err != nil {
		return err
	}
	return c.blanks(template)
}

// blanks puts tokens in the place of the values.
func (c *chart) blanks(template *unstructured.Unstructured) error {
	spec := template.Object["spec"].(map[string]any)                  //nolint:forcetypeassert // read as such before
	pod := spec["template"].(map[string]any)["spec"].(map[string]any) //nolint:forcetypeassert // the same
	container := pod["containers"].([]any)[0].(map[string]any)        //nolint:forcetypeassert // the same
	spec["replicas"], container["image"], container["resources"] = tokenReplicas, tokenImage, tokenResources
	pod["tolerations"], pod["affinity"] = tokenTolerations, tokenAffinity
	volumes, _ := pod["volumes"].([]any)
	for _, v := range volumes {
		volume, _ := v.(map[string]any)
		if source, ok := volume["configMap"].(map[string]any); ok {
			source["name"] = tokenConfigMap
			if volume["name"] == "kubeconfig-file" {
				source["name"] = tokenKubeconfigMap
			}
		}
	}
	return nil
}

// hashOf is the end of the name of an object that is named by its content.
func hashOf(name string) string { return name[strings.LastIndexByte(name, '-')+1:] }

// configMap takes the text out of one of the two ConfigMaps.
func (c *chart) configMap(real, template *unstructured.Unstructured) error {
	data, _, err := unstructured.NestedStringMap(template.Object, "data")
	if err != nil || len(data) != 1 {
		return errors.Join(errors.New("it has not one key"), err)
	}
	for key, text := range data {
		token, name := tokenConfiguration, tokenConfigMap
		if strings.HasPrefix(key, "kubeconfig-for-") {
			token, name = tokenKubeconfig, tokenKubeconfigMap
			c.kubeconfig = text
			if strings.Contains(text, "<redacted>") {
				c.kubeconfigSuffix = hashOf(real.GetName())
			}
		} else {
			c.configuration = text
		}
		template.SetName(name)
		data[key] = token
	}
	return unstructured.SetNestedStringMap(template.Object, data, "data")
}

// metadata adds Chart.yaml and values.yaml.
func (c *chart) metadata() error {
	about, err := yaml.Marshal(map[string]any{
		"apiVersion": "v2", "name": c.in.Name, "type": "application", "version": "0.1.0", "appVersion": c.in.Release,
		"description": "kube-scheduler " + c.in.Release + " beside the cluster's own, as pmk-sched " + c.in.Version + " deploys it",
	})
	if err != nil {
		return err
	}
	c.files["Chart.yaml"] = about
	var text bytes.Buffer
	for _, v := range []struct {
		comment, name string
		value         any
	}{
		{"What pods put in spec.schedulerName, and the stem of every object's name.", "name", c.values.Name},
		{"The image, as the nodes see it.", "image", c.values.Image},
		{"How many pods run; one of them schedules at a time.", "replicas", c.values.Replicas},
		{"Resources of the container.", "resources", c.values.Resources},
		{"Labels of the nodes to run on; \"\" is a label that has to exist, with any value.", "nodeSelector", c.values.NodeSelector},
		{"Tolerations of the pods.", "tolerations", c.values.Tolerations},
		{"Plugins of the profile, as in a KubeSchedulerConfiguration: YAML as text, so that it arrives as it is.", "plugins", c.values.Plugins},
		{"Their arguments, the list pluginConfig of the profile.", "pluginConfig", c.values.PluginConfig},
	} {
		value, err := yaml.Marshal(map[string]any{v.name: v.value})
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "# %s\n%s", v.comment, value)
	}
	c.files["values.yaml"] = text.Bytes()
	return nil
}

// jsonText is a value as an expression of the chart writes it.
func jsonText(value any) (string, error) {
	text, err := json.Marshal(value)
	return string(text), err
}
