// Package replace replaces the default scheduler of a control-plane node, which is a static pod, and restores it.
package replace
