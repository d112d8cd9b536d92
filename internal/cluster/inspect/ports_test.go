package inspect

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// socketTable prints listening sockets as the kernel does, with a connection
// that is not one of them.
func socketTable(listening ...string) string {
	line := func(i int, address, state string) string {
		at := netip.MustParseAddrPort(address)
		ip := at.Addr().As4()
		return fmt.Sprintf("%4d: %08X:%04X 00000000:0000 %s 00000000:00000000 00:00000000 00000000     0        0 %d 1\n", i,
			binary.LittleEndian.Uint32(ip[:]), at.Port(), state, 1000+i)
	}
	var b strings.Builder
	b.WriteString("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n")
	for i, address := range listening {
		b.WriteString(line(i, address, "0A"))
	}
	b.WriteString(line(len(listening), "127.0.0.1:10262", "01"))
	return b.String()
}

func TestParseSockets(t *testing.T) {
	got, err := parseSockets(strings.NewReader(socketTable("0.0.0.0:443", "127.0.0.1:10259")))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{443, 10259}, got); diff != "" {
		t.Error(diff)
	}
	six := "  sl  local_address remote_address st\n   0: 00000000000000000000000000000000:2813 " +
		"00000000000000000000000000000000:0000 0A 0 0\n"
	if got, err := parseSockets(strings.NewReader(six)); err != nil || !slices.Equal(got, []int{10259}) {
		t.Errorf("IPv6: %v, %v", got, err)
	}
	if _, err := parseSockets(strings.NewReader("h\n 0: 0100007F 0 0A\n")); err == nil {
		t.Error("no error for a line without a port")
	}
}

func TestDetectChoosesThePort(t *testing.T) {
	const master = "10.0.0.1"
	ours := func(pod corev1.Pod) corev1.Pod {
		pod.Annotations, pod.Labels = nil, ownership.Labels("my-scheduler")
		return pod
	}
	named := func(c corev1.Container, ports ...corev1.ContainerPort) corev1.Container {
		c.Ports = ports
		return c
	}
	withConfigMap := func(pod corev1.Pod, configMap, at string) corev1.Pod {
		pod.Spec.Volumes = []corev1.Volume{{Name: "config",
			VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: configMap}}}}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "config", MountPath: at}}
		return pod
	}
	for _, tc := range []struct {
		name     string
		version  string
		pods     []corev1.Pod
		sockets  []string
		port     int
		insecure int
	}{
		{name: "only the default scheduler", port: 10260},
		{name: "flag", pods: []corev1.Pod{
			staticPod("other", master, container("s", "x", "kube-scheduler", "--secure-port", "10260"))}, port: 10261},
		{name: "flag with underscores", pods: []corev1.Pod{
			staticPod("other", master, container("s", "x", "kube-scheduler", "--secure_port=10260"))}, port: 10261},
		{name: "address flag", pods: []corev1.Pod{
			staticPod("other", master, container("s", "x", "thing", "--metrics-bind-address=:10260"))}, port: 10261},
		{name: "declared ports", pods: []corev1.Pod{
			staticPod("other", master, named(container("s", "x"), corev1.ContainerPort{ContainerPort: 10260})),
			staticPod("another", master, named(container("s", "x"), corev1.ContainerPort{ContainerPort: 10261})),
		}, port: 10262},
		{name: "probe", pods: []corev1.Pod{
			staticPod("other", master,
				corev1.Container{Name: "s",
					LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
						HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(10260)}}}})}, port: 10261},
		{name: "host port of a pod on its own network", pods: []corev1.Pod{func() corev1.Pod {
			p := staticPod("other", master,
				named(container("s", "x", "x", "--port=10261"), corev1.ContainerPort{ContainerPort: 80, HostPort: 10260}))
			p.Spec.HostNetwork = false
			return p
		}()}, port: 10261},
		{name: "finished pod", pods: []corev1.Pod{func() corev1.Pod {
			p := staticPod("other", master, container("s", "x", "x", "--port=10260"))
			p.Status.Phase = corev1.PodFailed
			return p
		}()}, port: 10260},
		{name: "pod on a worker", pods: []corev1.Pod{
			staticPod("other", "10.0.0.2", container("s", "x", "x", "--port=10260"))}, port: 10260},
		{name: "listening process", sockets: []string{"127.0.0.1:10260", "0.0.0.0:10261"}, port: 10262},
		{name: "ours keeps its port", pods: []corev1.Pod{
			ours(staticPod("my", master, container("s", "x", "kube-scheduler", "--secure-port=10263")))},
			sockets: []string{"0.0.0.0:10263"}, port: 10263},
		{name: "ours off the control plane", pods: []corev1.Pod{
			ours(staticPod("my", "10.0.0.2", container("s", "x", "kube-scheduler", "--secure-port=10263")))}, port: 10263},
		{name: "ours shares its port with another", pods: []corev1.Pod{
			ours(staticPod("my", master, container("s", "x", "kube-scheduler", "--secure-port=10260"))),
			staticPod("other", master, container("s", "x", "x", "--port=10260")),
		}, port: 10261},
		{name: "insecure port", version: "v1.21.3", sockets: []string{"0.0.0.0:10251"}, port: 10260, insecure: 10261},
		{name: "insecure port of a scheduler's ConfigMap", version: "v1.21.3",
			pods: []corev1.Pod{withConfigMap(staticPod("other", master, container("s", "x", "kube-scheduler",
				"--config=/etc/k/c.yaml")), "config", "/etc/k")}, port: 10261, insecure: 10262},
		{name: "ours keeps its insecure port", version: "v1.21.3", sockets: []string{"0.0.0.0:10263", "127.0.0.1:10260"},
			pods: []corev1.Pod{ours(withConfigMap(staticPod("my", master, container("s", "x", "kube-scheduler",
				"--secure-port=10259", "--config=/etc/k/c.yaml")), "config", "/etc/k/"))}, port: 10260, insecure: 10261},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := pmkMaster()
			if tc.version != "" {
				s.gitVersion = tc.version
			}
			s.pods = append(s.pods, tc.pods...)
			s.configMaps = map[string]map[string]string{
				"kube-system/config": {"c.yaml": "healthzBindAddress: 127.0.0.1:10260\nmetricsBindAddress: 127.0.0.1:10260\n"}}
			root := t.TempDir()
			writeFile(t, root, pmkKubeconfig, newAuthority(t).kubeconfig(t, testNow.AddDate(1, 0, 0)))
			writeFile(t, root, "/proc/1/net/tcp", socketTable(tc.sockets...))
			info := detect(t, s, func(o *Options) { o.NodeRoot, o.Name = root, "my-scheduler" })
			if info.Scheduler.Port != tc.port || info.Scheduler.InsecurePort != tc.insecure {
				t.Errorf("got %d and %d, want %d and %d; taken: %v", info.Scheduler.Port, info.Scheduler.InsecurePort, tc.port,
					tc.insecure, info.Scheduler.Taken)
			}
		})
	}
}

func TestDetectReadsPortsFromTheNodesConfiguration(t *testing.T) {
	s := pmkMaster()
	pod := &s.pods[0]
	pod.Spec.Volumes = []corev1.Volume{{Name: "configs",
		VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc/pf9/kube.d/configs"}}}}
	pod.Spec.Containers[2].VolumeMounts = []corev1.VolumeMount{{Name: "configs", MountPath: "/srv/kubernetes/configs"}}
	root := t.TempDir()
	writeFile(t, root, pmkKubeconfig, newAuthority(t).kubeconfig(t, testNow.AddDate(1, 0, 0)))
	writeFile(t, root, "/proc/1/net/tcp", socketTable())
	writeFile(t, root, "/etc/pf9/kube.d/configs/kube-scheduler.yaml", "healthzBindAddress: 0.0.0.0:10260\n")
	info := detect(t, s, func(o *Options) { o.NodeRoot = root })
	if diff := cmp.Diff([]int{10259, 10260}, info.Scheduler.Pods[0].Ports); diff != "" || info.Scheduler.Port != 10261 {
		t.Errorf("port %d, the default scheduler's:\n%s", info.Scheduler.Port, diff)
	}
}

func TestThePortIsTheFirstFreeOne(t *testing.T) {
	taken := func(from, to int) map[int]string {
		ports := map[int]string{}
		for port := from; port <= to; port++ {
			ports[port] = "x"
		}
		return ports
	}
	for name, c := range map[string]struct {
		taken map[int]string
		own   []int
		after int
		want  int
	}{
		"none is taken":                 {nil, nil, 0, FirstPort},
		"the first ones are taken":      {taken(FirstPort, FirstPort+2), nil, 0, FirstPort + 3},
		"only the last one is free":     {taken(FirstPort, LastPort-1), nil, 0, LastPort},
		"all are taken":                 {taken(FirstPort, LastPort), nil, 0, 0},
		"after another one":             {nil, nil, FirstPort, FirstPort + 1},
		"after the last one":            {nil, nil, LastPort, 0},
		"the scheduler has it already":  {taken(FirstPort, LastPort), []int{10300}, 0, 10300},
		"it has one, and needs another": {taken(10300, 10300), []int{10300}, 10300, 10301},
	} {
		if got := choosePort(c.taken, c.own, c.after); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}

func TestFilesOfContainersAreFoundOnTheNode(t *testing.T) {
	hostPath := func(name, path string) corev1.Volume {
		return corev1.Volume{Name: name,
			VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{
		hostPath("srv", "/host/srv"), hostPath("conf", "/host/s.conf"), hostPath("pki", "/host/pki"), hostPath("root", "/host/"),
		{Name: "map", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
	}}}
	mounts := func(namesAndPaths ...string) (list []corev1.VolumeMount) {
		for pair := range slices.Chunk(namesAndPaths, 2) {
			list = append(list, corev1.VolumeMount{Name: pair[0], MountPath: pair[1]})
		}
		return list
	}
	for name, c := range map[string]struct {
		mounts     []corev1.VolumeMount
		file, want string
	}{
		"in a directory":                 {mounts("srv", "/srv/k"), "/srv/k/a/b", "/host/srv/a/b"},
		"in a directory with a slash":    {mounts("srv", "/srv/k/"), "/srv/k/a", "/host/srv/a"},
		"a file":                         {mounts("conf", "/etc/s.conf"), "/etc/s.conf", "/host/s.conf"},
		"the directory itself":           {mounts("srv", "/srv/k"), "/srv/k", "/host/srv"},
		"not a name with the same start": {mounts("srv", "/etc/k"), "/etc/kubernetes/a", "/etc/kubernetes/a"},
		"at the root":                    {mounts("root", "/"), "/etc/a", "/host/etc/a"},
		"a volume that is unknown":       {mounts("none", "/srv/k"), "/srv/k/a", "/srv/k/a"},
		"a ConfigMap":                    {mounts("map", "/srv/k"), "/srv/k/a", "/srv/k/a"},
		"the innermost mount":            {mounts("srv", "/srv", "pki", "/srv/pki"), "/srv/pki/a", "/host/pki/a"},
		"not mounted":                    {nil, "/srv/../etc/a", "/etc/a"},
	} {
		if got := onNode(pod, &corev1.Container{VolumeMounts: c.mounts}, c.file); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}

// Flags of kube-scheduler that need no value do not take the next word for one.
func TestPortsOfAContainer(t *testing.T) {
	probe := func(action corev1.ProbeHandler) *corev1.Probe { return &corev1.Probe{ProbeHandler: action} }
	for name, c := range map[string]struct {
		container   corev1.Container
		want, hosts []int
	}{
		"flags": {corev1.Container{Command: []string{"kube-scheduler", "--leader-elect", "--secure-port", "1001"},
			Args: []string{"--healthz-bind-address=:1002", "--port=70000",
				"--bind-address=127.0.0.1:1004", "--v=1005", "--port-of=1006"}}, []int{1001, 1002, 1004}, nil},
		"declared ports": {corev1.Container{Ports: []corev1.ContainerPort{{ContainerPort: 80, HostPort: 1002},
			{ContainerPort: 1001}}}, []int{1001, 1002}, []int{1002}},
		"probes": {corev1.Container{
			LivenessProbe:  probe(corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(1003)}}),
			ReadinessProbe: probe(corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(1002)}}),
			StartupProbe:   probe(corev1.ProbeHandler{Exec: &corev1.ExecAction{}}),
		}, []int{1002, 1003}, nil},
	} {
		if diff := cmp.Diff(c.want, containerPorts(&c.container)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(c.hosts, hostPorts(&c.container), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s, host ports (-want +got):\n%s", name, diff)
		}
	}
}
