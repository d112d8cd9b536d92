// Package churn creates pods while their scheduler is deployed again and again, and while a node
// fails.
package churn
