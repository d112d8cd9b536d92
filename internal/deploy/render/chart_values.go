package render

import (
	"bytes"
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"
)

// readFields reads a scheduler's objects, with the fields in values.yaml.
func readFields(in Input) (values, error) {
	v, err := readObjects(in)
	if err == nil {
		v.fields, err = v.list(in)
	}
	if err != nil {
		return v, fmt.Errorf("write a chart of scheduler %s: %w", in.Name, err)
	}
	return v, nil
}

// list returns the fields in values.yaml.
func (v values) list(in Input) ([]field, error) {
	const ownArgs = 5 // of the template: the program, --config, --secure-port and two kubeconfigs
	if len(v.scheduler.Command) < ownArgs || len(v.scheduler.Ports) != 1 || v.scheduler.ReadinessProbe == nil ||
		v.scheduler.LivenessProbe == nil {
		return nil, errors.New("its objects have no Deployment with a kube-scheduler container")
	}
	pod := v.deployment.Spec.Template.Spec
	liveness, readiness := v.scheduler.LivenessProbe.HTTPGet, v.scheduler.ReadinessProbe.HTTPGet
	args, err := in.template("command", v.scheduler.Command[ownArgs:])
	if err != nil {
		return nil, err
	}
	return []field{
		{"name", "Scheduler name (spec.schedulerName of pods), and the prefix of the names of all objects.", in.Name},
		{"image", "Image of the scheduler.", v.scheduler.Image},
		{"imagePullPolicy", "IfNotPresent, Always, Never, or empty for the default of the cluster.",
			v.scheduler.ImagePullPolicy},
		{"replicas", "Number of pods. One of them schedules at a time.", *v.deployment.Spec.Replicas},
		{"resources", "Resources of the scheduler's container.", v.scheduler.Resources},
		{"nodeSelector", `Labels of the nodes to run on; "" matches any value.`, in.NodeSelector},
		{"architectures", "Architectures of the nodes to run on: those of the image. Empty: any.", in.Architectures},
		{"tolerations", "Tolerations of the pods.", pod.Tolerations},
		{"priorityClassName", "Priority class of the pods. Empty: none.", pod.PriorityClassName},
		{"configuration", "KubeSchedulerConfiguration: profiles, plugins and their arguments. A template.", v.configuration},
		{"pluginRules", "RBAC rules that plugins need in addition to those of system:kube-scheduler.", v.pluginRules},
		{"authenticationReader",
			"Bind the Role extension-apiserver-authentication-reader in kube-system: /metrics accepts client certificates.",
			in.AuthenticationReader},
		{"credentials",
			"The pods use the token of their ServiceAccount. To use a client certificate instead, set secret to the name\n" +
				"# of an existing Secret with ca.crt, tls.crt and tls.key, and user to the common name of the certificate.",
			map[string]string{"secret": "", "user": "system:kube-scheduler"}},
		{"apiServer", "URL of the API server.", in.APIServer},
		{"hostNetwork", "Use the network of the node, for an API server that can be reached only from there.",
			pod.HostNetwork},
		{"port", "Port for health and metrics.", v.scheduler.Ports[0].ContainerPort},
		{"probes", "Paths of the probes, and the address if the scheduler listens on one only.",
			map[string]string{"host": liveness.Host, "livenessPath": liveness.Path, "readinessPath": readiness.Path}},
		{"args", "Further flags of kube-scheduler. Templates.", args},
		{"leaseNamespace", "Namespace of the leader election lease; default: the namespace of the chart.", v.leaseNamespace},
		{"annotations", "Annotations of the Deployment.", v.deployment.Annotations},
		{"extraObjects", "Further objects, containers, volumes and volume mounts, for extenders. Templates.", v.objects},
		{"extraContainers", "", v.containers}, {"extraVolumes", "", v.volumes}, {"extraVolumeMounts", "", v.mounts},
	}, nil
}

// encode writes values.yaml.
func encode(fields []field) ([]byte, error) {
	var text bytes.Buffer
	for _, field := range fields {
		value, err := yaml.Marshal(map[string]any{field.name: field.value})
		if err != nil {
			return nil, err
		}
		if field.comment != "" {
			fmt.Fprintf(&text, "# %s\n", field.comment)
		}
		text.Write(value)
	}
	return text.Bytes(), nil
}
