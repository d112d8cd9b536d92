package ask

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/artifact/pack"
	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/inspect"
	"github.com/pmk-sched/pmk-sched/internal/cluster/kubeapi"
	"github.com/pmk-sched/pmk-sched/internal/cluster/ownership"
	"github.com/pmk-sched/pmk-sched/internal/cluster/session"
	"github.com/pmk-sched/pmk-sched/versions"
)

// DefaultScheduler returns the cluster's default scheduler as its static pods describe it. read
// returns a scheduler with the configuration in a file of this machine or, for "", with that of its
// release. The scheduler cannot be asked if its configuration is not on this machine.
func DefaultScheduler(
	ctx context.Context, s *session.Session, read func(file string) (pack.Scheduler, error),
) (Subject, error) {
	cfg, err := s.Connect()
	if err != nil {
		return Subject{}, err
	}
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return Subject{}, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	pods, err := kubeapi.DefaultSchedulerPods(ctx, kube.CoreV1())
	if err != nil {
		return Subject{}, kubeapi.Explain("read the pods of the default scheduler", err)
	}
	root, err := s.FindNodeRoot()
	if err != nil {
		return Subject{}, err
	}
	found, err := describeDefault(pods, root)
	if err == nil {
		found.Scheduler, err = read(found.config)
	}
	found.Name, found.Absent = corev1.DefaultSchedulerName, err
	if found.gates != "" {
		found.Args = append(found.Args, "--feature-gates="+found.gates)
	}
	return found.Subject, nil
}

// described is the default scheduler with its configuration, a file of this machine, and its
// feature gates. Both may be empty.
type described struct {
	Subject
	config, gates string
}

// describeDefault returns what pods of the default scheduler say about it. root is the root
// directory of the files of this node, or "" if it is no control-plane node.
func describeDefault(pods []corev1.Pod, root string) (found described, err error) {
	if len(pods) == 0 {
		found.Unknown = []string{
			"whether the default scheduler has flags or a configuration of its own: the cluster shows no pod of it"}
		return found, nil
	}
	first := true
	for i := range pods {
		container := kubeapi.DefaultScheduler(&pods[i])
		if container == nil {
			continue
		}
		config, err := configurationOf(&pods[i], container, root)
		if err != nil {
			return found, err
		}
		flag, _ := versions.FindFlag(slices.Concat(container.Command, container.Args), "feature-gates")
		if !first && (flag.Value != found.gates || config != found.config) {
			return found, errors.New("find its configuration: its pods have different flags")
		}
		found.config, found.gates, first = config, flag.Value, false
	}
	if found.config != "" {
		found.Unknown = []string{"whether the default schedulers of other nodes have the same configuration as this node"}
	}
	return found, nil
}

// configurationOf returns the file of this node with a pod's configuration, or "" if it has that of
// its release.
func configurationOf(pod *corev1.Pod, container *corev1.Container, root string) (string, error) {
	hint := "run pmk-sched ask serve on a control-plane node, or ask with its configuration: --config FILE"
	if pod.Annotations[ownership.AnnotationReplacement] != "" {
		return "", problem.Errorf("ask with its configuration: --config FILE, and --with for its plugins",
			"find its plugins: `pmk-sched replace` has replaced it on node %s", pod.Spec.NodeName)
	}
	words := slices.Concat(container.Command, container.Args)
	if flag, ok := versions.FindFlag(words, "config"); ok {
		if file := inspect.NodeFile(pod, container, flag.Value); root != "" && file != "" {
			return filepath.Join(root, file), nil
		}
		return "", problem.Errorf(hint, "find its configuration: it is the file %s on node %s", flag.Value, pod.Spec.NodeName)
	}
	// They change decisions up to 1.22 (cmd/kube-scheduler/app/options/deprecated.go).
	for _, name := range []string{
		"policy-config-file", "policy-configmap", "algorithm-provider", "hard-pod-affinity-symmetric-weight", "scheduler-name",
	} {
		if flag, ok := versions.FindFlag(words, name); ok {
			return "", problem.Errorf(hint, "find its configuration: its pod %s/%s has the flag --%s=%s", pod.Namespace, pod.Name,
				name, flag.Value)
		}
	}
	return "", nil
}
