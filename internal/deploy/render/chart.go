// Package render writes one scheduler's objects for other tools: as a Helm chart, as a Kustomize
// base, and with objects for Prometheus and Grafana. It does no I/O and runs none of these tools.
package render

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/versions"
)

//go:embed all:chart
var chart embed.FS

// Input is the input for a chart, or for a release of a chart or a Kustomize base.
type Input struct {
	// Name is the scheduler name, Namespace the objects' namespace.
	Name, Namespace string
	// Release is the scheduler's Kubernetes release.
	Release versions.Release
	// APIServer is the URL at which the pods reach the API server.
	APIServer string
	// NodeSelector holds the labels of the nodes to run on; an empty value matches any value.
	NodeSelector map[string]string
	// Architectures of the image. Nil: unknown.
	Architectures []string
	// AuthenticationReader is set if the objects have the RoleBinding in kube-system.
	AuthenticationReader bool
	// Objects are the scheduler's objects, with ServiceAccount credentials.
	Objects []*unstructured.Unstructured
}

// values are the fields in values.yaml that are read from the objects.
type values struct {
	version        string
	deployment     appsv1.Deployment
	scheduler      corev1.Container
	configuration  string
	leaseNamespace string
	pluginRules    []rbacv1.PolicyRule
	objects        []any // without a template
	containers     any
	volumes        any
	mounts         []corev1.VolumeMount

	fields []field
}

// field is a field in values.yaml.
type field struct {
	name, comment string
	value         any
}

// Chart returns the files for a Helm chart that installs one scheduler, by their paths. The
// templates are the files under chart; only Chart.yaml and values.yaml are generated. With the
// generated values, `helm template` gives the objects that pmk-sched renders, names that end in a
// hash included.
func Chart(in Input) (map[string][]byte, error) {
	v, err := readFields(in)
	if err != nil {
		return nil, err
	}
	return chartFiles(in, v, v.fields)
}

// chartFiles returns the files for a chart with the fields' values.
func chartFiles(in Input, v values, fields []field) (map[string][]byte, error) {
	files := map[string][]byte{}
	var err error
	if files["Chart.yaml"], err = metadata(in, v); err != nil {
		return nil, err
	}
	if files["values.yaml"], err = encode(fields); err != nil {
		return nil, err
	}
	templates, err := fs.Sub(chart, "chart")
	if err != nil {
		return nil, err
	}
	return files, fs.WalkDir(templates, ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files[path], err = fs.ReadFile(templates, path)
		}
		return err
	})
}

// readObjects sorts the objects into objects that the templates write and other objects.
func readObjects(in Input) (values, error) {
	var v values
	for _, o := range in.Objects {
		templated, err := v.object(in, o)
		if err != nil {
			return v, fmt.Errorf("read %s/%s: %w", o.GetKind(), o.GetName(), err)
		}
		if templated {
			continue
		}
		object, err := in.template("", o.Object)
		if err != nil {
			return v, fmt.Errorf("read %s/%s: %w", o.GetKind(), o.GetName(), err)
		}
		v.objects = append(v.objects, object)
	}
	return v, nil
}

// object reads one object and reports whether a template writes it.
func (v *values) object(in Input, o *unstructured.Unstructured) (templated bool, err error) {
	switch o.GetKind() + "/" + o.GetName() {
	case "ServiceAccount/" + in.Name, "PodDisruptionBudget/" + in.Name, "ClusterRoleBinding/" + in.Name +
		"-plugins", "RoleBinding/" + in.Name + "-lease",
		"ClusterRoleBinding/" + in.Name + "-as-kube-scheduler", "ClusterRoleBinding/" + in.Name + "-as-volume-scheduler",
		"RoleBinding/" + in.Name + "-extension-apiserver-authentication-reader":
		return true, nil
	case "Role/" + in.Name + "-lease":
		if o.GetNamespace() != in.Namespace {
			v.leaseNamespace = o.GetNamespace()
		}
		return true, nil
	case "ClusterRole/" + in.Name + "-plugins":
		var role rbacv1.ClusterRole
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role)
		v.pluginRules = role.Rules
		return true, err
	case "Deployment/" + in.Name:
		return true, v.pod(in, o)
	}
	if o.GetKind() != "ConfigMap" {
		return false, nil
	}
	data, _, err := unstructured.NestedStringMap(o.Object, "data")
	if text, found := data[in.Name+".yaml"]; found && err == nil {
		v.configuration, err = in.configurationTemplate(text)
		return true, err
	}
	_, kubeconfig := data["kubeconfig-for-"+in.Name+".yaml"]
	return kubeconfig, err
}

// pod reads the Deployment: the fields that are values, and the extenders' additions to the pod.
func (v *values) pod(in Input, o *unstructured.Unstructured) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &v.deployment); err != nil {
		return err
	}
	v.version = v.deployment.Labels["app.kubernetes.io/version"]
	pod := v.deployment.Spec.Template.Spec
	var extra []corev1.Container
	for _, c := range pod.Containers {
		if c.Name == "kube-scheduler" {
			v.scheduler = c
		} else {
			extra = append(extra, c)
		}
	}
	templated := []string{"kubeconfig-file", "config-file"}
	volumes := slices.DeleteFunc(slices.Clone(pod.Volumes),
		func(volume corev1.Volume) bool { return slices.Contains(templated, volume.Name) })
	v.mounts = slices.DeleteFunc(slices.Clone(v.scheduler.VolumeMounts),
		func(m corev1.VolumeMount) bool { return slices.Contains(templated, m.Name) })
	var err error
	if v.containers, err = in.template("containers", extra); err == nil {
		v.volumes, err = in.template("volumes", volumes)
	}
	return err
}

// metadata is Chart.yaml.
func metadata(in Input, v values) ([]byte, error) {
	return yaml.Marshal(map[string]any{
		"apiVersion": "v2", "name": in.Name, "type": "application", "version": "0.1.0", "appVersion": in.Release.String(),
		"description": "kube-scheduler " + in.Release.String() + " as a second scheduler",
		"annotations": map[string]string{"pmk-sched.io/version": v.version},
	})
}
