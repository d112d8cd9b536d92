package kubescheduler

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"
)

const (
	// TiesVerb is the extenders' verb in a configuration.
	TiesVerb = "prioritize"
	// unknownAddress stands for the address of a service that does not run yet (RFC 2606).
	unknownAddress = "http://ties.invalid"
	// base is the number of scores that an extender can give: 0 to 10 (MaxExtenderPriority in
	// k8s.io/kube-scheduler/extender/v1).
	base = 11
	// closeTime is the time for calls by a scheduler that has ended.
	closeTime = 5 * time.Second
)

// Breaker is an extender that prefers one of several equal nodes for each pod, always the same one.
// Schedulers break ties at random, so that two runs of one simulation differ. Close it.
type Breaker struct{ service *service }

// StartBreaker starts a service. Ranks differ between seeds.
func StartBreaker(seed uint64) (*Breaker, error) {
	service, err := startService(TiesVerb, func(_ context.Context, digit int, args *arguments) any {
		return rank(seed, args.Pod.Metadata.Namespace+"/"+args.Pod.Metadata.Name, args.NodeNames, digit)
	})
	if err != nil {
		return nil, err
	}
	return &Breaker{service}, nil
}

// TieAddresses returns extender addresses, without the verb, that rank a number of nodes: one for
// each digit, the least first. [Breaker.Resolve] replaces them where the service runs.
func TieAddresses(nodes int) []string {
	all := []string{unknownAddress + "/0"}
	for ranks := base; ranks < nodes; ranks *= base {
		all = append(all, fmt.Sprintf("%s/%d", unknownAddress, len(all)))
	}
	return all
}

// Resolve returns a configuration with the service's addresses, instead of those from
// [TieAddresses].
func (b *Breaker) Resolve(configuration string) []byte {
	return bytes.ReplaceAll([]byte(configuration), []byte(unknownAddress), []byte(b.service.Address()))
}

// Close stops the service and returns when it has ended, also if the context is done.
func (b *Breaker) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	return b.service.Close(ctx)
}

// priority is HostPriority.
type priority struct {
	Host  string
	Score int
}

// rank returns a digit of each node's rank for a pod: an order that looks random, and does not
// depend on the nodes' order. Nodes with the digit 0 are left out, which means the same.
func rank(seed uint64, pod string, nodes []string, digit int) []priority {
	type hashed struct {
		node string
		hash uint64
	}
	all := make([]hashed, len(nodes))
	for i, node := range nodes {
		h := fnv.New64a()
		fmt.Fprintf(h, "%d %s %s", seed, pod, node)
		all[i] = hashed{node, mix(h.Sum64())}
	}
	slices.SortFunc(all, func(x, y hashed) int { return cmp.Or(cmp.Compare(x.hash, y.hash), cmp.Compare(x.node, y.node)) })
	divisor := 1
	for range digit {
		divisor *= base
	}
	scores := []priority{}
	for i, h := range all {
		if score := i / divisor % base; score > 0 {
			scores = append(scores, priority{h.node, score})
		}
	}
	return scores
}

// mix spreads similar FNV hashes, whose last byte affects few bits (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
