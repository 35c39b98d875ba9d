// Command bench measures in two VMs what Weir costs, prints a table, and writes bench/results.json. It loads nothing into the
// kernel of the machine that it runs on. docs/performance.md says what the figures mean.
package main
