package inspect

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/pmk-sched/pmk-sched/versions"
)

// LastPort is the last port to search for a free one. Higher ones may be ephemeral ports.
const LastPort = 11259

// ports collects the ports in use and chooses the port for the scheduler.
func (d *detector) ports(context.Context) {
	taken := map[int]string{}
	own := []int{}
	for _, host := range d.hosts {
		for _, port := range host.ports {
			if host.ours {
				own = append(own, port)
			} else if taken[port] == "" {
				taken[port] = "pod " + host.name
			}
		}
	}
	if d.info.Node.ControlPlane {
		listening, err := listeningPorts(d.o.NodeRoot)
		if err != nil {
			d.o.Log.Debug("could not read listening sockets", zap.Error(err))
			d.warn("%v: the ports of processes outside of pods on this node are unknown", err)
		}
		for _, port := range listening {
			if taken[port] == "" && !slices.Contains(own, port) {
				taken[port] = "a process on this node"
			}
		}
	}
	scheduler := &d.info.Scheduler
	for _, port := range slices.Sorted(maps.Keys(taken)) {
		scheduler.Taken = append(scheduler.Taken, TakenPort{Port: port, By: taken[port]})
	}
	own = slices.DeleteFunc(sortedPorts(own), func(port int) bool { return taken[port] != "" })
	scheduler.Port = choosePort(taken, own, 0)
	if d.rules.InsecurePort {
		scheduler.InsecurePort = choosePort(taken, own, scheduler.Port)
	}
	if scheduler.Port == 0 {
		d.warn("every port from %d to %d is in use on the control-plane nodes", FirstPort, LastPort)
	}
}

// choosePort returns the first port after the given one that the scheduler already
// uses or, if there is none, the first free one.
func choosePort(taken map[int]string, own []int, after int) int {
	for _, port := range own {
		if port > after {
			return port
		}
	}
	for port := max(FirstPort, after+1); port <= LastPort; port++ {
		if taken[port] == "" {
			return port
		}
	}
	return 0
}

// containerPorts returns a container's ports in the host's network, according to its specification:
// declared ports, ports in probes, and ports in flags.
func containerPorts(container *corev1.Container) []int {
	var ports []int
	for _, port := range container.Ports {
		ports = append(ports, int(cmp.Or(port.HostPort, port.ContainerPort)))
	}
	for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe, container.StartupProbe} {
		if probe != nil && probe.HTTPGet != nil {
			ports = append(ports, probe.HTTPGet.Port.IntValue())
		}
		if probe != nil && probe.TCPSocket != nil {
			ports = append(ports, probe.TCPSocket.Port.IntValue())
		}
	}
	for name, value := range flagsOf(container) {
		ports = append(ports, flagPort(name, value))
	}
	return sortedPorts(ports)
}

// hostPorts returns the host ports for a container in a pod network.
func hostPorts(container *corev1.Container) []int {
	var ports []int
	for _, port := range container.Ports {
		ports = append(ports, int(port.HostPort))
	}
	return sortedPorts(ports)
}

// flagPort returns the port that a flag sets, or 0:
// --secure-port=10259, --healthz-bind-address=0.0.0.0:10252.
func flagPort(name, value string) int {
	if name == "port" || strings.HasSuffix(name, "-port") {
		port, err := strconv.Atoi(value)
		if err != nil {
			return 0
		}
		return port
	}
	if strings.HasSuffix(name, "address") || strings.HasPrefix(name, "listen") || strings.HasPrefix(name, "bind") {
		return addressPort(value)
	}
	return 0
}

// addressPort returns the port in "host:port" or ":port", or 0.
func addressPort(address string) int {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return 0
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return port
}

// flagsOf returns a container's flags by name, without dashes.
func flagsOf(container *corev1.Container) map[string]string {
	flags := map[string]string{}
	for _, f := range versions.ParseFlags(slices.Concat(container.Command, container.Args)) {
		if f.Name != "" {
			flags[f.Name] = f.Value
		}
	}
	return flags
}

// schedulerPorts returns the kube-scheduler ports that its pod does not declare: its default port,
// and the ports in its configuration file.
func (d *detector) schedulerPorts(ctx context.Context, pod *corev1.Pod, container *corev1.Container) []int {
	flags := flagsOf(container)
	var ports []int
	if _, set := flags["secure-port"]; !set {
		ports = append(ports, versions.SecurePort)
	}
	if flags["config"] == "" {
		return ports
	}
	raw, err := d.mountedFile(ctx, pod, container, flags["config"])
	if err != nil {
		d.warnUnread(err, fmt.Sprintf("read configuration of pod %s/%s", pod.Namespace, pod.Name),
			"the ports that it sets are unknown")
		return ports
	}
	return append(ports, configurationPorts(raw)...)
}

// configurationPorts returns the ports for the plain HTTP listeners in a KubeSchedulerConfiguration
// up to v1beta2.
func configurationPorts(raw []byte) []int {
	var configuration struct {
		HealthzBindAddress string `json:"healthzBindAddress"`
		MetricsBindAddress string `json:"metricsBindAddress"`
	}
	if err := yaml.Unmarshal(raw, &configuration); err != nil {
		return nil
	}
	return sortedPorts([]int{addressPort(configuration.HealthzBindAddress), addressPort(configuration.MetricsBindAddress)})
}

// kubeconfigsOf returns the paths on the node at which a scheduler may read its kubeconfig: those
// in its flags or, if there are none, its configuration and the files and directories that it
// mounts.
func kubeconfigsOf(pod *corev1.Pod, container *corev1.Container) []string {
	flags := flagsOf(container)
	var paths []string
	for _, name := range []string{"kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"} {
		if flags[name] != "" {
			paths = append(paths, onNode(pod, container, flags[name]))
		}
	}
	if len(paths) > 0 {
		return paths
	}
	if flags["config"] != "" {
		paths = append(paths, onNode(pod, container, flags["config"]))
	}
	for _, mount := range container.VolumeMounts {
		paths = append(paths, onNode(pod, container, mount.MountPath))
	}
	return paths
}

// onNode returns the path on the node for a file in a container, or the path in the container if it
// is not on the node.
func onNode(pod *corev1.Pod, container *corev1.Container, file string) string {
	return cmp.Or(NodeFile(pod, container, file), path.Clean(file))
}

// NodeFile returns the path on the node for a file in a static pod's container. It is empty if the
// file is not on the node.
func NodeFile(pod *corev1.Pod, container *corev1.Container, file string) string {
	for volume, below := range volumesAt(pod, container, file) {
		if volume.HostPath != nil {
			return path.Join(volume.HostPath.Path, below)
		}
	}
	return ""
}

// volumesAt yields the volumes that a container mounts at or above a file, the innermost first,
// with the rest of the file's path.
func volumesAt(pod *corev1.Pod, container *corev1.Container, file string) iter.Seq2[corev1.Volume, string] {
	mounts := slices.SortedStableFunc(slices.Values(container.VolumeMounts),
		func(a, b corev1.VolumeMount) int { return cmp.Compare(len(b.MountPath), len(a.MountPath)) })
	return func(yield func(corev1.Volume, string) bool) {
		for _, mount := range mounts {
			below, inside := strings.CutPrefix(file, strings.TrimSuffix(mount.MountPath, "/"))
			if !inside || below != "" && below[0] != '/' {
				continue
			}
			i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
			if i >= 0 && !yield(pod.Spec.Volumes[i], below) {
				return
			}
		}
	}
}

// mountedFile returns a container's file from a ConfigMap or from this node. It returns nil if the
// file is elsewhere.
func (d *detector) mountedFile(ctx context.Context, pod *corev1.Pod, container *corev1.Container,
	file string) ([]byte, error) {
	for volume, below := range volumesAt(pod, container, file) {
		switch {
		case volume.ConfigMap != nil:
			configMap, err := d.core.ConfigMaps(pod.Namespace).Get(ctx, volume.ConfigMap.Name, metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			return []byte(configMap.Data[path.Base(file)]), nil
		case volume.HostPath != nil && d.info.Node.ControlPlane:
			return readNodeFile(d.o.NodeRoot, path.Join(volume.HostPath.Path, below))
		}
	}
	return nil, nil
}

// sortedPorts returns the valid ports, each once, by number.
func sortedPorts(ports []int) []int {
	ports = slices.DeleteFunc(ports, func(port int) bool { return port < 1 || port > 65535 })
	slices.Sort(ports)
	return slices.Compact(ports)
}
