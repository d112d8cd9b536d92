//go:build ignore

package main

import (
	"fmt"

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

func (l *lister) List() ([]*framework.NodeInfo, error) {
	var all []*framework.NodeInfo
	for _, info := range l.infos {
		all = append(all, info)
	}
	return all, nil
}

func (l *lister) Get(name string) (*framework.NodeInfo, error) {
	for _, info := range l.infos {
		if info.Node().Name == name {
			return info, nil
		}
	}
	return nil, fmt.Errorf("no node %s", name)
}
