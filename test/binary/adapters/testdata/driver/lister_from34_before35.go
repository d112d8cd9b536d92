//go:build ignore

package main

import (
	"fmt"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// lister is a snapshot of nodes.
type lister struct {
	framework.SharedLister
	framework.NodeInfoLister
	infos []*framework.NodeInfo
}

func newLister(infos []*framework.NodeInfo) *lister { return &lister{infos: infos} }

func (l *lister) NodeInfos() framework.NodeInfoLister { return l }

func (l *lister) List() ([]fwk.NodeInfo, error) {
	var all []fwk.NodeInfo
	for _, info := range l.infos {
		all = append(all, info)
	}
	return all, nil
}

func (l *lister) Get(name string) (fwk.NodeInfo, error) {
	for _, info := range l.infos {
		if info.Node().Name == name {
			return info, nil
		}
	}
	return nil, fmt.Errorf("no node %s", name)
}
