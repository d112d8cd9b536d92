//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/pmk-sched/pmk-sched/internal/artifact/programs"
)

// Status is a lab's status.
type Status struct {
	Name    string    `json:"name"`
	Layout  string    `json:"layout"`
	Release string    `json:"release"`
	Created time.Time `json:"created"`
	// Complete is set if Up has finished.
	Complete bool `json:"complete"`
	// Server is the URL of the API server from the machine, Version its version; "" if it does not
	// answer, in which case Problem is the reason.
	Server  string `json:"server,omitempty"`
	Version string `json:"version,omitempty"`
	Problem string `json:"problem,omitempty"`
	// Nodes are the nodes with a kubelet; Workers counts the simulated ones.
	Nodes   []NodeStatus `json:"nodes"`
	Workers Workers      `json:"workers"`
	// Processes are the processes outside of the nodes.
	Processes []Process `json:"processes"`
	// Kubeconfig works on the machine.
	Kubeconfig string `json:"kubeconfig"`
	// Programs are the Kubernetes programs that the lab runs, with their origins.
	Programs []programs.Program `json:"programs,omitempty"`
}

// NodeStatus is a node's status.
type NodeStatus struct {
	Name    string `json:"name"`
	Role    Role   `json:"role"`
	Address string `json:"address,omitempty"`
	// Running is set unless the node is stopped; Ready is its Node object's condition.
	Running   bool      `json:"running"`
	Ready     bool      `json:"ready"`
	Processes []Process `json:"processes"`
	// Root is the node's file system.
	Root string `json:"root"`
}

// Workers counts the fake nodes.
type Workers struct {
	Total int `json:"total"`
	Ready int `json:"ready"`
}

// Process is a process of a lab that does not run in a container.
type Process struct {
	Name string `json:"name"`
	// PID is 0 if the process is not running.
	PID int    `json:"pid,omitempty"`
	Log string `json:"log"`
}

// Status inspects the processes and queries the API server. An incomplete or broken lab has a
// status too; only an unreadable machine is an error.
func (l *Lab) Status(ctx context.Context) (*Status, error) {
	s := &Status{
		Name: l.Name(), Layout: l.Layout(), Created: l.state.Created, Complete: l.state.Ready,
		Kubeconfig: l.Kubeconfig(), Programs: l.state.Programs,
	}
	if !l.state.Release.IsZero() {
		s.Release = l.state.Release.String()
	}
	var err error
	if s.Processes, err = l.network().list(l.networkDaemons()); err != nil {
		return nil, err
	}
	for _, n := range l.Nodes() {
		status := NodeStatus{Name: n.name, Role: n.role, Root: n.Root()}
		if n.address.IsValid() {
			status.Address = n.address.String()
		}
		if status.Processes, err = n.list(n.daemons()); err != nil {
			return nil, err
		}
		status.Running = status.Processes[0].PID != 0
		s.Nodes = append(s.Nodes, status)
	}
	if err := l.askServer(ctx, s); err != nil {
		s.Problem = err.Error()
	}
	return s, nil
}

// networkDaemons returns the names of the processes outside the nodes.
func (l *Lab) networkDaemons() []string {
	names := []string{holder}
	if l.hosted() {
		names = append(names, "etcd")
	}
	if l.balanced() {
		names = append(names, balancer)
	}
	if l.state.Nodes > 0 {
		names = append(names, "kwok")
	}
	return names
}

// daemons returns the names of the node's processes. kubeadm runs etcd in a pod.
func (n *Node) daemons() []string {
	switch {
	case !n.hasKubelet():
		return append([]string{holder}, components()...)
	case n.lab.byKubeadm(), n.lab.hosted():
		return []string{holder, "containerd", "kubelet", "kube-proxy"}
	}
	names := []string{holder, "etcd", "containerd", "kubelet", "kube-proxy"}
	if n.lab.virtualAddress().IsValid() {
		names = append(names, keeper)
	}
	return names
}

func (h host) list(names []string) ([]Process, error) {
	running, err := h.processes()
	if err != nil {
		return nil, err
	}
	var found []Process
	for _, name := range names {
		found = append(found, Process{Name: name, PID: h.pid(name, running), Log: h.logFile(name)})
	}
	return found, nil
}

func (l *Lab) askServer(ctx context.Context, s *Status) error {
	cfg, err := l.restConfig()
	if err != nil {
		return err
	}
	cfg.Timeout = 5 * time.Second
	s.Server = cfg.Host
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("connect to lab %s: %w", l.Name(), err)
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("ask the API server: %w", err)
	}
	s.Version = version.GitVersion
	var problems []error
	for i, n := range s.Nodes {
		if node, err := l.Node(n.Name); err == nil && !node.hasKubelet() {
			err = node.checkAPIServer(ctx)
			s.Nodes[i].Ready = err == nil
			problems = append(problems, err)
			continue
		}
		object, err := client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("ask for node %s: %w", n.Name, err)
		}
		err = checkNodeReady(object)
		s.Nodes[i].Ready = err == nil
		problems = append(problems, err)
	}
	s.Workers.Ready, s.Workers.Total, err = l.workersReady(ctx, client)
	return errors.Join(append(problems, err)...)
}

func (l *Lab) workersReady(ctx context.Context, client kubernetes.Interface) (ready, total int, err error) {
	if l.state.Nodes == 0 {
		return 0, 0, nil
	}
	list, err := client.CoreV1().Nodes().List(ctx,
		metav1.ListOptions{LabelSelector: workerSelector, ResourceVersion: "0"})
	if err != nil {
		return 0, 0, fmt.Errorf("list workers: %w", err)
	}
	for i := range list.Items {
		if checkNodeReady(&list.Items[i]) == nil {
			ready++
		}
	}
	return ready, len(list.Items), nil
}
