package session

import (
	"context"

	"github.com/pmk-sched/pmk-sched/internal/base/problem"
	"github.com/pmk-sched/pmk-sched/internal/cluster/explain"
	"github.com/pmk-sched/pmk-sched/internal/cluster/explain/collect"
)

// Explain explains why a pod is pending, or why it runs on its node. If the pod does not exist, it
// explains why its workload may not create it.
func (s *Session) Explain(ctx context.Context, namespace, name string) (*explain.Report, error) {
	cfg, err := s.Connect()
	if err != nil {
		return nil, err
	}
	input, err := collect.Pod(ctx, cfg, namespace, name, s.Log)
	if err != nil {
		return nil, err
	}
	report := explain.Pod(*input)
	if report.State == explain.Missing && len(report.Findings) == 0 {
		return nil, problem.Invalidf("name its namespace with -n; `kubectl get pods -A` lists pods", "pod %s does not exist in namespace %s", name, namespace)
	}
	return report, nil
}
