package matrix

import (
	"math"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
)

const (
	// attempts limits the attempts at a simulation whose pod fails.
	attempts = 2
	// overhead is the time for a pod in addition to the simulation: the image pull.
	overhead = 10 * time.Minute
	// leftoverTime is the time for which a Job stays whose creator was killed.
	leftoverTime = time.Hour
	// container is the container's name.
	container = "simulate"
	// ListVariable is the environment variable with the simulations, for [RunCell].
	ListVariable = "PMK_SCHED_SIMULATIONS"
	// user is the user in images that pmk-sched builds.
	user = 65532
)

// Job is an indexed Job with one pod for each simulation.
type Job struct {
	Name, Namespace string
	// Image contains everything that the simulations need. Command runs the simulation whose number is
	// in the environment variable JOB_COMPLETION_INDEX, of the list in [ListVariable], which is List.
	Image   string
	Command []string
	List    string
	// Cells is the number of simulations, Parallel the number that run at the same time.
	Cells, Parallel int
	// Node is the node on which all pods run, tolerating its taints. If it is empty, they run on any
	// node. Arch is the programs' architecture.
	Node, Arch string
	// Memory is the memory that a simulation needs, in bytes.
	Memory int64
	// Timeout bounds one simulation.
	Timeout time.Duration
	// PerIndex reports that the API server has backoffLimitPerIndex (by default from 1.29 on).
	PerIndex bool
}

func (j Job) labels() map[string]string {
	labels := ownership.Labels(j.Name)
	labels[ownership.LabelComponent] = ownership.ComponentSimulation
	return labels
}

// limit returns the Job's time limit: each simulation is tried as often as possible.
func (j Job) limit() time.Duration {
	rounds := (j.Cells + j.Parallel - 1) / j.Parallel
	return time.Duration(rounds*attempts) * (j.Timeout + overhead)
}

// object returns the Job. Its pods have no rights: not even a ServiceAccount token.
func (j Job) object() *batchv1.Job {
	indexed, cells, parallel := batchv1.IndexedCompletion, int32(j.Cells), int32(min(j.Parallel, j.Cells))
	unlimited, perIndex := int32(math.MaxInt32), int32(attempts-1)
	deadline, keep := int64(j.limit().Seconds()), int32(leftoverTime.Seconds())
	job := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: j.Name, Namespace: j.Namespace, Labels: j.labels()},
		Spec: batchv1.JobSpec{
			CompletionMode: &indexed, Completions: &cells, Parallelism: &parallel,
			ActiveDeadlineSeconds: &deadline, TTLSecondsAfterFinished: &keep,
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: j.labels()}, Spec: j.pod()},
		},
	}
	if j.PerIndex {
		job.Spec.BackoffLimitPerIndex = &perIndex
	} else {
		job.Spec.BackoffLimit = &unlimited // the runner counts: one that fails must not end the others
	}
	return job
}

func (j Job) pod() corev1.PodSpec {
	no, id, deadline, grace := false, int64(user), int64((j.Timeout + overhead).Seconds()), int64(10)
	security := ownership.ConfinedAs(id)
	security.RunAsGroup = &id
	pod := corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, ActiveDeadlineSeconds: &deadline, TerminationGracePeriodSeconds: &grace,
		AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
		SecurityContext: security, NodeSelector: map[string]string{corev1.LabelOSStable: "linux",
			corev1.LabelArchStable: j.Arch},
		Containers: []corev1.Container{{
			Name: container, Image: j.Image, ImagePullPolicy: corev1.PullIfNotPresent, Command: j.Command,
			Env:                      []corev1.EnvVar{{Name: ListVariable, Value: j.List}},
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: *resource.NewQuantity(j.Memory,
					resource.BinarySI),
			}},
			SecurityContext: ownership.Confined(), VolumeMounts: []corev1.VolumeMount{{Name: "temp", MountPath: "/tmp"}},
		}},
		Volumes: []corev1.Volume{ownership.EmptyDir("temp")},
	}
	if j.Node != "" {
		pod.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
		pod.Affinity = &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
					{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{j.Node}},
				}}},
			}}}
	}
	return pod
}
