// Command bench measures in VMs what Weir costs, prints a table, and writes bench/results.json. It loads nothing into the kernel of
// the machine that it runs on. Arguments name parts, count, feel, containers, idle, crowd or names: then only those are measured, and the figures
// of the others stay. docs/performance.md says what they mean.
package main
