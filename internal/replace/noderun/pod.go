// Package noderun runs pmk-sched on a control-plane node from another machine, in a short-lived
// privileged pod. A Secret that the pod mounts holds the request, and the pod's termination message
// is the result, a [Report].
package noderun

import (
	"path"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

// Namespace of the pods. Clusters that restrict privileged pods allow them there, and critical
// pods.
const Namespace = metav1.NamespaceSystem

// Paths in the pod's containers.
const (
	// Program is pmk-sched in its image.
	Program = "/usr/local/bin/pmk-sched"
	// RequestFile has [Task.Request].
	RequestFile = "/run/pmk-sched/request.json"
	// SchedulerDir contains the program from the scheduler's image, see [Task.Scheduler].
	SchedulerDir = "/run/scheduler"
	// ReportFile is the file to which the program writes its [Report]. The kubelet reads it
	// (TerminationMessagePathDefault).
	ReportFile = corev1.TerminationMessagePathDefault

	toolDir = "/run/tool"
	tempDir = "/tmp"
)

// Command is pmk-sched's hidden command for the pod's containers, with a subcommand for each.
const (
	Command    = "on-node"
	CopyTool   = "copy"
	ReadImage  = "extract"
	RunRequest = "run"
)

// Container names.
const (
	toolContainer      = "tool"
	schedulerContainer = "scheduler"
	mainContainer      = "pmk-sched"
)

// undoTime is the time that pmk-sched may take to undo an unfinished change when the pod is
// deleted, until the former scheduler runs again.
const undoTime = 5 * time.Minute

// unprivileged is the user for the containers that need no privileges.
const unprivileged = 65534

// Task is a task for pmk-sched on a node.
type Task struct {
	// Node is the node's name.
	Node string
	// Image is an image with pmk-sched at [Program].
	Image string
	// Scheduler is a scheduler's image. The kubelet pulls it, and an init container copies its program
	// to [SchedulerDir]. It is empty if the task needs no scheduler. Programs are the programs that
	// the scheduler's command names.
	Scheduler string
	Programs  []string
	// Kubeconfig is a file on the node.
	Kubeconfig string
	// Directories on the node are mounted at the same path. Directories in Created may be missing.
	Directories, Created []string
	// Request is read by the program.
	Request []byte
	// Timeout limits the time that the pod may run.
	Timeout time.Duration
}

// name is the name of the pod and the Secret. A node has one pod at a time, for any task.
func (t Task) name() string { return "pmk-sched-run-" + strings.ToLower(t.Node) }

// labels mark a task's objects.
func labels() map[string]string {
	all := ownership.Labels(corev1.DefaultSchedulerName)
	all[ownership.LabelComponent] = ownership.ComponentNodeRun
	return all
}

func (t Task) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: t.name(), Namespace: Namespace, Labels: labels()}
}

// Secret returns the object with the request. A configuration may have extenders' keys in it.
func (t Task) Secret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: t.meta(), Data: map[string][]byte{path.Base(RequestFile): t.Request}}
}

// Pod returns the pod. Only its last container, which runs pmk-sched's image, is privileged: an
// unprivileged container reads the program in the scheduler's image.
func (t Task) Pod() *corev1.Pod {
	no, grace, deadline := false, int64(undoTime/time.Second), int64(t.Timeout/time.Second)
	pod := &corev1.Pod{
		ObjectMeta: t.meta(),
		Spec: corev1.PodSpec{
			NodeName: t.Node, HostNetwork: true, HostPID: true, RestartPolicy: corev1.RestartPolicyNever,
			PriorityClassName:            "system-node-critical",
			Tolerations:                  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
			ActiveDeadlineSeconds: &deadline, TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{t.main()},
			Volumes: []corev1.Volume{
				ownership.EmptyDir("temp"),
				{Name: "request", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: t.name()}}},
			},
		},
	}
	for _, dir := range t.directories() {
		pod.Spec.Volumes = append(pod.Spec.Volumes, t.hostPath(dir))
	}
	if t.Scheduler != "" {
		pod.Spec.InitContainers = t.readers()
		pod.Spec.Volumes = append(pod.Spec.Volumes, ownership.EmptyDir("tool"), ownership.EmptyDir("scheduler"))
	}
	return pod
}

// directories are all directories on the node.
func (t Task) directories() []string { return slices.Concat(t.Directories, t.Created) }

// main is the container that does the task. It is privileged because SELinux and AppArmor keep
// other containers from writing to the node's directories and from seeing the kubelet, and because
// the scheduler's program is checked in separate namespaces.
func (t Task) main() corev1.Container {
	yes, root := true, int64(0)
	c := container(mainContainer, t.Image,
		[]string{Program, "--kubeconfig", t.Kubeconfig, "--cache-dir", tempDir + "/cache", Command, RunRequest})
	c.SecurityContext = &corev1.SecurityContext{Privileged: &yes, RunAsUser: &root, ReadOnlyRootFilesystem: &yes}
	c.VolumeMounts = []corev1.VolumeMount{{Name: "temp", MountPath: tempDir},
		{Name: "request", MountPath: path.Dir(RequestFile), ReadOnly: true}}
	for _, dir := range t.directories() {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volumeName(dir), MountPath: dir})
	}
	if t.Scheduler != "" {
		c.VolumeMounts = append(c.VolumeMounts,
			corev1.VolumeMount{Name: "scheduler", MountPath: SchedulerDir, ReadOnly: true})
	}
	return c
}

// readers are the containers that read the program in the scheduler's image: pmk-sched runs in that
// image, which may have no shell.
func (t Task) readers() []corev1.Container {
	tool := path.Join(toolDir, path.Base(Program))
	copies := container(toolContainer, t.Image, []string{Program, "--cache-dir", toolDir, Command, CopyTool, tool})
	copies.VolumeMounts = []corev1.VolumeMount{{Name: "tool", MountPath: toolDir}}
	reads := container(schedulerContainer, t.Scheduler,
		slices.Concat([]string{tool, "--cache-dir", SchedulerDir, Command, ReadImage, SchedulerDir}, t.Programs))
	reads.VolumeMounts = []corev1.VolumeMount{{Name: "tool", MountPath: toolDir, ReadOnly: true},
		{Name: "scheduler", MountPath: SchedulerDir}}
	return []corev1.Container{copies, reads}
}

// container returns a container without rights. If it fails without a message, its log is the
// message.
func container(name, image string, command []string) corev1.Container {
	yes, user := true, int64(unprivileged)
	security := ownership.Confined()
	security.RunAsUser, security.RunAsNonRoot = &user, &yes
	return corev1.Container{
		Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent, Command: command,
		TerminationMessagePath: ReportFile, TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext: security,
	}
}

func (t Task) hostPath(dir string) corev1.Volume {
	kind := corev1.HostPathDirectory
	if slices.Contains(t.Created, dir) {
		kind = corev1.HostPathDirectoryOrCreate
	}
	return corev1.Volume{Name: volumeName(dir),
		VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir, Type: &kind}}}
}

// volumeName returns the name of a directory's volume: node-etc-kubernetes.
func volumeName(dir string) string {
	return "node" + strings.NewReplacer("/", "-", ".", "-", "_", "-").Replace(dir)
}
