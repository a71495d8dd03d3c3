// The device of a step on this node: its cores, its directory and its daemon. The calls come in this order.
#ifndef OFFPATH_FRONTENDS_SLURM_DEVICE_H
#define OFFPATH_FRONTENDS_SLURM_DEVICE_H

#include "slurm/step.h"

// Chooses the cores, makes the directory in which the tasks find their device, and names it in OFFPATH_DIR of
// the tasks. Runs with the user's rights.
void offpath_device_prepare(spank_t spank, offpath_step_t* step);

// Starts the daemon beside the node's first task.
void offpath_device_start(spank_t spank, offpath_step_t* step, pid_t first_task);

// Moves this process, a task, from the device's cores to its others. A task without others stays. So do all
// tasks if they need the device's cores (offpath_device_place_t), since fewer cores than they asked for would
// slow them more than the device does. The first task of the node that stays says so.
void offpath_device_leave(const offpath_step_t* step);

// Ends the daemon, shows its last lines, and removes the directory. No effect if nothing was prepared.
void offpath_device_end(offpath_step_t* step);

#endif
