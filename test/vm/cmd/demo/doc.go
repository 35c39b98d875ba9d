// Command demo shows Weir's main job in a test VM: what an agent's commands can reach before and after its container is tainted.
//
//	make demo
//
// It owns the story and its checks: guest.py tells it in the VM, agent.sh is the guarded agent, world.py is the rest of the
// world and hears every packet. It exits with status 1 if anything did not behave. WEIR_DEMO_KERNEL chooses the kernel. It never
// leaves the VM, and it is no substitute for the tests.
package main
