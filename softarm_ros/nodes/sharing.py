"""The nodes that may share a process. Imports nothing."""

# Executable and class of each node.
SHARING = {
    'plant_node': 'PlantNode',
    'inverse_kinematics_node': 'InverseKinematicsNode',
    'tracker_node': 'TrackerNode',
    'supervisor_node': 'SupervisorNode',
}
