// Package memory keeps an operator's notes in stores, as plain files in one folder (STORE/KEY.md), and hands them to agents: stripped of
// what hides in text (M3), wrapped as untrusted data (M4), within budgets (M5). It decides nothing about who may read what, writes
// nothing for agents, and leaves a store's marks (M6) to whoever taints.
package memory
